// How a chart is looked at, and what is marked in it.
import type { Axis } from "./curve";
import type { Series } from "./series";

export interface Moment {
  at: number; // seconds since 1970
  label: string;
}

export interface Trouble {
  from: number; // seconds since 1970
  to: number;
  step: number | null; // where it began: a later attempt may have done that step again, at another time
  bad: boolean;
  names: readonly string[]; // none: it concerns all
}

export interface ChartLook {
  axis: Axis;
  origin: number; // where relative time begins, in seconds since 1970
  smoothing: number;
  logarithmic: boolean;
  zoom: [number, number] | null;
  sync: string; // charts of one name share their cursor
}

export interface ChartMarks {
  moments: readonly Moment[];
  troubles: readonly Trouble[];
  earlier?: ReadonlyMap<string, readonly Series[]>; // by metric: what attempts before the newest measured
}

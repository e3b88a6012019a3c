// How the charts are looked at: what a link should show is in the address, what is a habit is remembered.
import { computed } from "vue";
import { AXES, type Axis } from "@/domain/curve";
import { useQueryValues } from "./useQueryValues";
import { useStored } from "./useStored";

const FEW_RANKS = 8;

export function useChartChoice() {
  const { value } = useQueryValues();
  const wanted = value("metric");
  const smoothing = useStored("runyard.charts.smoothing", 0.6);
  const pins = useStored<string[]>("runyard.charts.pins", []);
  const asked = {
    axis: value("x"),
    zoom: value("zoom"),
    log: value("log"),
    overlays: value("with"),
    ranks: value("ranks"),
    earlier: value("earlier"),
  };

  const axis = computed<Axis>(() => AXES.find((one) => one === asked.axis.value) ?? "step");
  const logarithmic = computed({ get: () => asked.log.value === "1", set: (on) => (asked.log.value = on ? "1" : "") });

  const earlier = computed({ get: () => asked.earlier.value === "1", set: (on) => (asked.earlier.value = on ? "1" : "") });

  const zoom = computed<[number, number] | null>({
    get: (): [number, number] | null => {
      const [from = NaN, to = NaN] = asked.zoom.value.split("~").map(Number);
      return to > from && Number.isFinite(to - from) ? [from, to] : null;
    },
    set: (range: [number, number] | null) =>
      (asked.zoom.value = range ? range.map((place) => Number(place.toPrecision(12))).join("~") : ""),
  });

  /** The other ranks in the chart of the first: so many are a picture, more are a tangle. */
  const withRanks = (most: number): boolean => (asked.ranks.value ? asked.ranks.value === "1" : most <= FEW_RANKS);

  /** A range of steps says nothing about times. */
  function setAxis(one: Axis): void {
    if (one === axis.value) return;
    asked.axis.value = one === "step" ? "" : one;
    zoom.value = null;
  }

  /** name:other,other;name:other in the address. */
  const overlays = computed(() => {
    const found = new Map<string, string[]>();
    for (const group of asked.overlays.value.split(";").filter(Boolean)) {
      const [name = "", others = ""] = group.split(":");
      found.set(decode(name), others.split(",").filter(Boolean).map(decode));
    }
    return found;
  });

  function write(name: string, others: string[]): void {
    const all = new Map(overlays.value).set(name, others);
    asked.overlays.value = [...all]
      .filter(([, found]) => found.length)
      .map(([one, found]) => `${encodeURIComponent(one)}:${found.map(encodeURIComponent).join(",")}`)
      .join(";");
  }

  return {
    wanted,
    axis,
    zoom,
    smoothing,
    logarithmic,
    earlier,
    pins,
    setAxis,
    withRanks,
    setRanks: (on: boolean) => (asked.ranks.value = on ? "1" : "0"),
    overlaysOf: (name: string): string[] => overlays.value.get(name) ?? [],
    overlay: (name: string, other: string) => other && write(name, [...(overlays.value.get(name) ?? []), other]),
    drop: (name: string, other: string) =>
      write(
        name,
        (overlays.value.get(name) ?? []).filter((one) => one !== other),
      ),
    pin: (name: string) => (pins.value = pins.value.includes(name) ? pins.value.filter((one) => one !== name) : [...pins.value, name]),
  };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

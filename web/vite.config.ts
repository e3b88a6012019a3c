import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { mkdirSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, URL } from "node:url";
import vue from "@vitejs/plugin-vue";
import { ElementPlusResolver } from "unplugin-vue-components/resolvers";
import Components from "unplugin-vue-components/vite";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const BUILT = resolve(import.meta.dirname, "../src/runyard/web");
const PARTS = resolve(import.meta.dirname, "../build");

// A browser asks one server for six files at a time: few larger ones are there sooner than fifty small ones.
const GROUPS = [
  { name: "frame", test: /node_modules\/(@?vue|vue-router|vue-i18n|@intlify|pinia|openapi-fetch|@vueuse)\//, priority: 2 },
  { name: "shared", minShareCount: 3, priority: 1 },
];

/** The server sends the packed files as they are: it never compresses. */
function packed(): Plugin {
  const pack = (folder: string): void => {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (statSync(path).isDirectory()) pack(path);
      else if (/\.(js|css|svg)$/.test(name) && statSync(path).size > 1024) {
        const content = readFileSync(path);
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
        writeFileSync(`${path}.br`, brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
      }
    }
  };
  return { name: "packed", apply: "build", closeBundle: () => pack(BUILT) };
}

/** What each part loads, for the test of its size: build/web-parts.json. */
function measured(): Plugin {
  return {
    name: "measured",
    apply: "build",
    writeBundle: (_, bundle) => {
      const parts = Object.values(bundle).flatMap((part) => {
        if (part.type !== "chunk") return [];
        const styles = [...(part.viteMetadata?.importedCss ?? [])];
        const source = part.facadeModuleId?.replace(`${import.meta.dirname}/`, "") ?? null;
        return [[part.fileName, { source, entry: part.isEntry, imports: part.imports, later: part.dynamicImports, styles }] as const];
      });
      mkdirSync(PARTS, { recursive: true });
      writeFileSync(join(PARTS, "web-parts.json"), JSON.stringify(Object.fromEntries(parts), null, 1));
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [
    vue(),
    Components({ dirs: [], dts: "src/components.d.ts", resolvers: [ElementPlusResolver({ importStyle: "css" })] }),
    packed(),
    measured(),
  ],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  define: { __VUE_OPTIONS_API__: "true", __VUE_PROD_DEVTOOLS__: "false", __INTLIFY_PROD_DEVTOOLS__: "false" },
  build: {
    outDir: BUILT,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 700,
    rolldownOptions: { output: { codeSplitting: { groups: GROUPS } } },
  },
  server: { proxy: { "/api": { target: "http://127.0.0.1:8765", ws: true } } },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.ts"],
    server: { deps: { inline: ["element-plus"] } },
  },
});

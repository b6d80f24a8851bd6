import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const PACKAGE = fileURLToPath(new URL('../', import.meta.url))
const SOURCES = join(PACKAGE, 'src/page')
const OUTPUT = join(PACKAGE, 'dist/page')

/** The file with the digest of the sources that the page was built from. */
const BUILT_FROM = 'built-from'

const COMPRESSED: ReadonlySet<string> = new Set(['.css', '.html', '.js', '.svg'])

/**
 * Builds the page into `dist/page`, with hashed names and compressed forms of each file. Does nothing
 * if the sources did not change. Returns the folder.
 */
export async function buildPage(): Promise<string> {
  const digest = digestOf(SOURCES)
  if (builtFrom() === digest) return OUTPUT
  const { build } = await import('vite')
  // Processes may build at the same time: each builds in a separate folder.
  const folder = `${OUTPUT}-${process.pid}`
  try {
    await build({
      root: SOURCES,
      base: './',
      configFile: false,
      logLevel: 'warn',
      publicDir: join(SOURCES, 'public'),
      oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
      build: {
        outDir: folder,
        emptyOutDir: true,
        target: 'es2023',
        // A script that is inline, or a style in a data URL, is against the page's security policy.
        assetsInlineLimit: 0,
        modulePreload: { polyfill: false },
        reportCompressedSize: false,
      },
    })
    compress(folder)
    writeFileSync(join(folder, BUILT_FROM), digest)
    rmSync(OUTPUT, { recursive: true, force: true })
    renameSync(folder, OUTPUT)
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    // Another process finished first.
    if (builtFrom() !== digest) throw error
  }
  return OUTPUT
}

function builtFrom(): string | undefined {
  try {
    return readFileSync(join(OUTPUT, BUILT_FROM), 'utf8')
  } catch {
    return undefined
  }
}

/** Returns a digest of every file that the page is built from. Declarations of types are not. */
function digestOf(folder: string): string {
  const hash = createHash('sha256').update(readFileSync(join(PACKAGE, 'package.json')))
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' }).toSorted()) {
    if (extname(path) === '' || path.endsWith('.d.ts')) continue
    hash
      .update(path)
      .update('\0')
      .update(readFileSync(join(folder, path)))
  }
  return hash.digest('hex')
}

function compress(folder: string): void {
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!COMPRESSED.has(extname(path))) continue
    const body = readFileSync(join(folder, path))
    const parameters = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: body.length }
    writeFileSync(join(folder, `${path}.br`), brotliCompressSync(body, { params: parameters }))
    writeFileSync(join(folder, `${path}.gz`), gzipSync(body, { level: 9 }))
  }
}

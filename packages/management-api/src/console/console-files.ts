import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join, relative, sep } from 'node:path'

/** The encodings in which the build stores a file, by the suffix of its name. The first that the client accepts is sent. */
const ENCODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

type ConsoleEncoding = (typeof ENCODINGS)[number][0]

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** A file of the page, and its compressed forms. */
export interface ConsoleFile {
  readonly mediaType: string
  readonly etag: string
  readonly body: Buffer
  readonly encoded: readonly { readonly encoding: ConsoleEncoding; readonly body: Buffer }[]
}

/** The files of the page by their paths, such as `assets/main-3f2a.js`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>

/** Reads every file of a folder into memory. Requests look up names there, so none reaches another file. */
export async function readConsoleFiles(folder: string): Promise<ConsoleFiles> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const bodies = new Map<string, Buffer>()
  for (const entry of entries) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath, entry.name)
    bodies.set(relative(folder, file).split(sep).join('/'), await readFile(file))
  }
  const files = new Map<string, ConsoleFile>()
  for (const [path, body] of bodies) {
    const mediaType = MEDIA_TYPES[extname(path)]
    if (mediaType === undefined) continue
    const encoded = ENCODINGS.flatMap(([encoding, suffix]) => {
      const compressed = bodies.get(`${path}${suffix}`)
      return compressed === undefined ? [] : [{ encoding, body: compressed }]
    })
    files.set(path, {
      mediaType,
      etag: `"${createHash('sha256').update(body).digest('hex').slice(0, 24)}"`,
      body,
      encoded,
    })
  }
  return files
}

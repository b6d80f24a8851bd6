import { readFileSync } from 'node:fs'

/**
 * How often files are read, in milliseconds. Reading small files sees what watching misses: files that are mounted,
 * replaced, or changed before the watch began.
 */
const LOOK_MS = 1_000

export interface FileWatchOptions<T> {
  /** Makes the value of the texts, in the order of the files. What it throws refuses them. */
  parse(texts: readonly string[]): T
  /** A file changed, and this is the new value. */
  changed(value: T): void
  /** A file changed, and the new content is refused or cannot be read: the value before stays. Once for each reason. */
  refused(error: Error): void
  /** @default 1000 milliseconds */
  readonly lookMs?: number | undefined
}

/** A value that is made of files, and made anew whenever one of them changes. */
export interface WatchedFiles<T> extends Disposable {
  readonly value: T
}

/**
 * Reads files now, and again when one of them changes: what was good stays in force until something good takes its place.
 * @throws what `parse` throws, and an Error for a file that cannot be read, when that is so at the start
 */
export function watchFiles<T>(files: readonly string[], options: FileWatchOptions<T>): WatchedFiles<T> {
  let texts = files.map(read)
  let value = options.parse(texts)
  // What the last look found wrong, so that it is said once.
  let reported = ''

  const look = (): void => {
    try {
      const found = files.map(read)
      if (found.every((text, i) => text === texts[i])) return
      texts = found
      value = options.parse(found)
      reported = ''
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown))
      if (error.message !== reported) options.refused(error)
      reported = error.message
      return
    }
    options.changed(value)
  }
  const timer = setInterval(look, options.lookMs ?? LOOK_MS)
  timer.unref()
  return {
    get value() {
      return value
    },
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
    throw new Error(`cannot read ${JSON.stringify(file)} (${reason})`, { cause: error })
  }
}

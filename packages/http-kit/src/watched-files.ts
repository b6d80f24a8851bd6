import type { SmallFile } from '@signalbox/broker-core/internal'
import { readSmallFile, readSmallFileSync, versionOfFile } from '@signalbox/broker-core/internal'

/**
 * Interval between checks of the files, in ms. Polling finds changes that file system notifications miss: mounted
 * files, replaced files, and changes from before the watch began.
 */
const LOOK_MS = 1_000

/**
 * Number of checks with the same file version after which the file is not read again. Two writes within one tick of
 * the file system's clock produce the same version, so one check is not enough.
 */
const SETTLED_LOOKS = 2

/** Options of {@link watchFiles}. */
export interface FileWatchOptions<T> {
  /** Builds the value from the texts, in the order of the files. Throws to reject them. */
  parse(texts: readonly string[]): T
  /**
   * Rebuilds the value after a change, without blocking the event loop. At the start, `parse` runs instead, because
   * no requests wait yet.
   * @default parse
   */
  reparse?(texts: readonly string[]): Promise<T>
  /** Receives the new value after a change. */
  changed(value: T): void
  /**
   * Receives the reason when changed files are rejected or cannot be read. The previous value stays in use. Called
   * once for each reason.
   */
  refused(error: Error): void
  /** Interval between checks, in ms. @default 1000 */
  readonly lookMs?: number | undefined
}

/** A value that is built from files, and rebuilt when one of them changes. */
export interface WatchedFiles<T> extends Disposable {
  readonly value: T
}

/**
 * Reads regular files of at most 4 MiB each, and reads them again when one changes. A rejected change keeps the
 * previous value. Only the first read blocks the event loop.
 * @throws the error of `parse`, or an Error for a file that cannot be read, if either happens at the start
 */
export function watchFiles<T>(files: readonly string[], options: FileWatchOptions<T>): WatchedFiles<T> {
  const watched = files.map((path) => new WatchedFile(path))
  let texts = watched.map(({ text }) => text)
  let value = options.parse(texts)
  // The reason of the last failed check, so that each reason is reported once.
  let reported = ''
  let disposed = false
  let timer: NodeJS.Timeout

  const look = async (): Promise<void> => {
    try {
      const found = await Promise.all(watched.map((file) => file.look()))
      if (disposed) return
      if (found.every((text, i) => text === texts[i])) return
      texts = found
      const next = options.reparse === undefined ? options.parse(found) : await options.reparse(found)
      if (disposed) return
      value = next
      reported = ''
    } catch (thrown) {
      if (disposed) return
      const error = thrown instanceof Error ? thrown : new Error(String(thrown))
      if (error.message !== reported) options.refused(error)
      reported = error.message
      return
    }
    options.changed(value)
  }
  const lookAgain = (): void => {
    timer = setTimeout(() => void look().finally(() => disposed || lookAgain()), options.lookMs ?? LOOK_MS)
    timer.unref()
  }
  lookAgain()
  return {
    get value() {
      return value
    },
    [Symbol.dispose]() {
      disposed = true
      clearTimeout(timer)
    },
  }
}

class WatchedFile {
  readonly #path: string
  #content: SmallFile
  /** Checks since the version changed. */
  #looks = 0

  /** @throws Error for a file that cannot be read */
  constructor(path: string) {
    this.#path = path
    this.#content = readSmallFileSync(path)
  }

  get text(): string {
    return this.#content.text
  }

  /** Resolves with the current text of the file. @throws Error for a file that cannot be read */
  async look(): Promise<string> {
    const { version } = this.#content
    if (this.#looks >= SETTLED_LOOKS && (await versionOfFile(this.#path)) === version) return this.text
    this.#content = await readSmallFile(this.#path)
    this.#looks = this.#content.version === version ? this.#looks + 1 : 0
    return this.text
  }
}

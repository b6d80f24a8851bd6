import type { SmallFile } from '@signalbox/broker-core/internal'
import { readSmallFile, readSmallFileSync, versionOfFile } from '@signalbox/broker-core/internal'

/**
 * How often files are looked at, in milliseconds. Looking sees what the system's notifications miss: files that are
 * mounted, replaced, or changed before the watch began.
 */
const LOOK_MS = 1_000

/**
 * A file whose version has been the same for so many looks is not read again. Before that it is: two writes within one
 * tick of the file system's clock give the same version.
 */
const SETTLED_LOOKS = 2

export interface FileWatchOptions<T> {
  /** Makes the value of the texts, in the order of the files. What it throws refuses them. */
  parse(texts: readonly string[]): T
  /**
   * Does the same for a change, off the event loop where `parse` may take long: at the start nobody waits for an answer.
   * @default parse
   */
  reparse?(texts: readonly string[]): Promise<T>
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
 * Reads regular files of at most 4 MiB each now, and again when one of them changes: what was good stays in force until
 * something good takes its place. After the start neither reading nor looking blocks the event loop.
 * @throws what `parse` throws, and an Error for a file that cannot be read, when that is so at the start
 */
export function watchFiles<T>(files: readonly string[], options: FileWatchOptions<T>): WatchedFiles<T> {
  const watched = files.map((path) => new WatchedFile(path))
  let texts = watched.map(({ text }) => text)
  let value = options.parse(texts)
  // What the last look found wrong, so that it is said once.
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
  /** Looks since the version changed. */
  #looks = 0

  /** @throws Error for a file that cannot be read */
  constructor(path: string) {
    this.#path = path
    this.#content = readSmallFileSync(path)
  }

  get text(): string {
    return this.#content.text
  }

  /** Resolves with the text that the file has now. @throws Error for a file that cannot be read */
  async look(): Promise<string> {
    const { version } = this.#content
    if (this.#looks >= SETTLED_LOOKS && (await versionOfFile(this.#path)) === version) return this.text
    this.#content = await readSmallFile(this.#path)
    this.#looks = this.#content.version === version ? this.#looks + 1 : 0
    return this.text
  }
}

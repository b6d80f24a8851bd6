/** The routes that a screen reads, each at its interval, as `packages/console/src/page/screens` do. */
type Screen = readonly (readonly [path: string, everyMs: number])[]

/** The state of the node, which the navigation shows on every screen. */
const NAVIGATION: Screen = [['/api/snapshot', 5_000]]

const OVERVIEW: Screen = [...NAVIGATION, ['/ready', 5_000], ['/api/history?channels=0&agents=20&range=hour', 10_000]]

function channel(name: string): Screen {
  return [
    ...NAVIGATION,
    [`/api/channels?type=events&search=${name}&limit=100`, 5_000],
    [`/api/history?type=events&channel=${name}&agents=0&range=hour`, 10_000],
  ]
}

const CHANNELS: Screen = [...NAVIGATION, ['/api/channels?search=&sort=name&order=asc&limit=200', 5_000]]

/** Operators' pages that are open: overviews, lists of channels, and screens of one channel. */
export class ConsolePages implements AsyncDisposable {
  readonly #api: string
  readonly #timers: NodeJS.Timeout[] = []
  readonly #running = new Set<Promise<void>>()
  requests = 0

  /** @param name The channel of the screens of one channel */
  constructor(api: string, count: number, name: string) {
    this.#api = api
    const screens = [OVERVIEW, channel(name), CHANNELS]
    for (let page = 0; page < count; page++) {
      for (const [path, everyMs] of screens[page % screens.length] ?? OVERVIEW) {
        const read = (): void => this.#read(path)
        // Pages are not opened at the same time.
        this.#timers.push(
          setTimeout(
            () => {
              read()
              this.#timers.push(setInterval(read, everyMs))
            },
            (page * everyMs) / count,
          ),
        )
      }
    }
  }

  #read(path: string): void {
    const reading = fetch(`${this.#api}${path}`)
      .then(async (response) => {
        await response.arrayBuffer()
        if (!response.ok) throw new Error(`${path}: ${response.status}`)
        this.requests++
      })
      .finally(() => this.#running.delete(reading))
    this.#running.add(reading)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer)
    await Promise.all(this.#running)
  }
}

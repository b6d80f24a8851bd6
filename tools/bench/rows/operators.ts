import { askJson } from '@signalbox/testkit/loopback'
import { McpClient, toolCall } from '@signalbox/testkit/mcp-client'
import type { SignalboxServer } from '@signalbox/testkit/signalbox-server'
import { WebSocket } from 'ws'

import type { RequestFigures } from '../processes.ts'
import { openLoad, startServer } from '../processes.ts'
import type { BenchContext, Row } from '../row.ts'
import { atLeast, atMost, inSequence, interleave, medians, ratios } from '../row.ts'
import type { Subject } from '../subject.ts'

const CHANNEL = 'bench.shown'
const PAGES = 10
/** Other channels, so that lists have rows. */
const OTHERS = 200

type Figures = {
  readonly 'CPU µs/request': number
  readonly 'p99 ms': number
  readonly 'max ms': number
  readonly 'reads/s': number
}

async function measurePages(context: BenchContext, subject: Subject, stack: AsyncDisposableStack) {
  const server = stack.use(await startServer(context, subject))
  for (let number = 0; number < OTHERS; number++) {
    await askJson(`${server.api}/api/actions/create_channel`, {
      body: { channel: `bench.other.${number}`, type: 'queues' },
    })
  }
  const json = toolCall('events_publish', { channel: CHANNEL, body: 'x'.repeat(1_024) })
  const load = await openLoad(context, stack, server.process, `${server.http}/mcp`, json)
  const run = async (count: number): Promise<Figures> => {
    await using pages = new ConsolePages(server.api, count, CHANNEL)
    const begin = performance.now()
    const { delay, result } = await server.process.loopDelayDuring(load)
    return {
      'CPU µs/request': result['CPU µs/request'],
      'p99 ms': delay.p99Ms,
      'max ms': delay.maxMs,
      'reads/s': pages.requests / ((performance.now() - begin) / 1_000),
    }
  }
  const [none = [], open = []] = await interleave(context.rounds, [() => run(0), () => run(PAGES)])
  const common = { details: { ...medians('none', none), ...medians('ten pages', open) } }
  return [
    {
      ...common,
      name: 'CPU of a send with no page of the console vs with ten open',
      goal: atLeast(0.95, 0.98),
      samples: ratios(none, open, (figures) => figures['CPU µs/request']),
    },
    {
      ...common,
      name: 'event-loop delay p99 that ten open pages add under load',
      goal: atMost(5, 2, 'ms'),
      samples: open.map((figures, round) => figures['p99 ms'] - (none[round]?.['p99 ms'] ?? 0)),
      details: {},
    },
  ]
}

/** The cost of the console's open pages for senders. */
export const consoleRow: Row = {
  id: 'console',
  title: 'ten open pages of the console: CPU of a send, event-loop delay',
  run: (context) => inSequence(context, (subject, stack) => measurePages(context, subject, stack)),
}

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
class ConsolePages implements AsyncDisposable {
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

/**
 * Each message is larger than the part that a monitor shows. Events are the cheapest to send, so a monitor has its
 * largest share there.
 */
const MESSAGE = { channel: 'bench.watched', body: 'x'.repeat(4_096) }
const QUERY = '?direction=in&max_body_size=1024'

const PACED_PER_SECOND = 1_000
const SENDERS = 10

/** Sends at a fixed pace; resolves with the number of messages that a reader was not shown. */
async function missedAtPace({ http, api }: SignalboxServer, seconds: number): Promise<number> {
  using reader = await MonitorReader.open(api, QUERY)
  const intervalMs = (SENDERS / PACED_PER_SECOND) * 1000
  const each = (PACED_PER_SECOND * seconds) / SENDERS
  const send = async () => {
    const client = await McpClient.open(http)
    const begin = performance.now()
    for (let n = 0; n < each; n++) {
      const wait = begin + n * intervalMs - performance.now()
      if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
      await client.call('events_publish', MESSAGE)
    }
    client.close()
  }
  await Promise.all(Array.from({ length: SENDERS }, send))
  const sent = each * SENDERS
  // The last messages are still in transit.
  for (let waits = 0; reader.messages + reader.dropped < sent && waits < 200; waits++) {
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  return sent - reader.messages
}

async function measureMonitor(context: BenchContext, subject: Subject, stack: AsyncDisposableStack) {
  const server = stack.use(await startServer(context, subject))
  const load = await openLoad(context, stack, server.process, `${server.http}/mcp`, toolCall('events_publish', MESSAGE))
  const watched = async (stalled: boolean): Promise<RequestFigures> => {
    using reader = await MonitorReader.open(server.api, QUERY)
    if (stalled) {
      reader.stall()
      // Until the buffers of the system and the server are full, a stalled reader receives messages like a reading one.
      await load()
    }
    return await load()
  }
  const alternatives = [load, () => watched(false), () => watched(true)]
  const [none = [], reading = [], stalled = []] = await interleave(context.rounds, alternatives)
  const missed: number[] = []
  for (let round = 0; round < Math.min(context.rounds, 3); round++) {
    missed.push(await missedAtPace(server, context.quick ? 1 : 3))
  }
  const details = { ...medians('no monitor', none), ...medians('reading', reading), ...medians('stalled', stalled) }
  const common = { details }
  return [
    {
      ...common,
      name: 'send rate with a stalled reader vs no monitor',
      goal: atLeast(0.95, 0.98),
      samples: ratios(stalled, none, (figures) => figures['requests/s']),
    },
    {
      ...common,
      name: 'the same by CPU',
      goal: atLeast(0.95, 0.98),
      samples: ratios(none, stalled, (figures) => figures['CPU µs/request']),
    },
    {
      ...common,
      name: 'with a reading one, by CPU',
      goal: atLeast(0.5, 0.7),
      samples: ratios(none, reading, (figures) => figures['CPU µs/request']),
    },
    {
      ...common,
      name: `messages that a reader was not shown, at ${PACED_PER_SECOND}/s`,
      goal: atMost(0, 0, ''),
      samples: missed,
      details: {},
    },
  ]
}

/** The cost of a monitor for senders. */
export const monitor: Row = {
  id: 'monitor',
  title: 'a live monitor: send rate with a stalled reader vs none; 1,000 messages/s followed',
  run: (context) => inSequence(context, (subject, stack) => measureMonitor(context, subject, stack)),
}

interface Frame {
  readonly kind: 'message' | 'dropped' | 'started'
  readonly count?: number
}

/** An operator's monitor that counts messages, or reads nothing at all. */
class MonitorReader implements Disposable {
  readonly #socket: WebSocket
  messages = 0
  /** The number of messages that the monitor reported as dropped. */
  dropped = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', (data: Buffer) => this.#count(data))
    socket.on('error', () => {})
  }

  /** @param query Filters of the monitor, `?direction=in` */
  static open(api: string, query: string): Promise<MonitorReader> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(`${api.replace('http', 'ws')}/api/monitor${query}`, { perMessageDeflate: false })
      const reader = new MonitorReader(socket)
      socket.once('message', () => resolve(reader))
      socket.once('error', reject)
    })
  }

  /** Stops reading. */
  stall(): void {
    this.#socket.pause()
  }

  #count(data: Buffer): void {
    // The reader must not dominate the measurement, so it parses only frames that are not messages.
    if (data.subarray(0, MESSAGE_START.length).equals(MESSAGE_START)) {
      this.messages++
      return
    }
    const { kind, count = 0 } = JSON.parse(data.toString()) as Frame
    if (kind === 'dropped') this.dropped += count
  }

  [Symbol.dispose](): void {
    this.#socket.terminate()
  }
}

const MESSAGE_START = Buffer.from('{"kind":"message"')

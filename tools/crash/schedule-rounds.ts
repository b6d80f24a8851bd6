import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import type { BrokerHandle, Message } from '@signalbox/broker-core'
import { createBroker } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { openNatsEngine } from '@signalbox/engine-nats'
import { NatsServer } from '@signalbox/engine-nats/testing'
import { MeasuredProcess } from '@signalbox/testkit/measured-process'
import type { Random } from '@signalbox/testkit/random'
import type { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import { BrokenPromises } from '../load/ledgers.ts'
import type { ScheduleReport, ScheduleRequest } from './schedule-worker.ts'

/** The promises about schedules. */
const PROMISES = {
  lost: 'due times without a message',
  doubled: 'due times with several messages',
} as const

export class ScheduleViolations extends BrokenPromises<keyof typeof PROMISES> {
  constructor() {
    super(PROMISES)
  }
}

export interface ScheduleRoundsOptions {
  readonly rounds: number
  readonly engine: 'embedded' | 'nats'
  readonly folder: TemporaryFolder
  readonly random: Random
  readonly violations: ScheduleViolations
  readonly log: (line: string) => void
}

export interface ScheduleFigures {
  readonly kills: number
  readonly dueTimes: number
  /** Messages that were sent again, and that the engine recognized. */
  readonly recognized: number
}

const WORKER = fileURLToPath(new URL('schedule-worker.ts', import.meta.url))
/** The queue and the events store of the messages. */
const CHANNEL = 'due'
/** Schedules of a round, each due a little after the one before it. */
const SCHEDULES = 10
const SPREAD_MS = 4
/** The time from the writes to the first due time, in ms. */
const AHEAD_MS = 250
const SETTLE_MS = 60_000

/** A process with schedules. */
class Worker {
  readonly #process: MeasuredProcess
  readonly #waiting = new Map<ScheduleReport['kind'], (report: ScheduleReport) => void>()
  readonly ready: Promise<ScheduleReport>

  constructor(engine: string, place: string, fired: (outcome: string) => void) {
    this.#process = new MeasuredProcess({ script: WORKER, args: [engine, place, CHANNEL], instrumented: false })
    this.#process.child.on('message', (message) => {
      const report = message as ScheduleReport
      if (report.kind === 'fired') fired(report.outcome)
      else this.#waiting.get(report.kind)?.(report)
    })
    this.ready = this.#next('ready')
  }

  #next(kind: ScheduleReport['kind']): Promise<ScheduleReport> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(kind, resolve)
      this.#process.child.once('disconnect', () => reject(new Error(`the worker ended\n${this.#process.output}`)))
    })
  }

  ask(request: ScheduleRequest): Promise<ScheduleReport> {
    const answer = this.#next(request.kind)
    this.#process.child.send(request)
    return answer
  }

  async kill(): Promise<void> {
    this.ready.catch(() => undefined)
    await this.#process.kill()
  }
}

/** Kills nodes around due times, and counts the messages of each due time: on NATS one of two nodes, which goes on. */
export async function scheduleRounds(options: ScheduleRoundsOptions): Promise<ScheduleFigures> {
  const { engine, folder, log, random, rounds, violations } = options
  await using nats = engine === 'nats' ? await NatsServer.start() : undefined
  const place = nats?.url ?? folder.join('schedules')
  let recognized = 0
  const start = (): Worker => new Worker(engine, place, (outcome) => outcome === 'duplicate' && recognized++)
  const workers = engine === 'nats' ? [start(), start()] : [start()]
  const ids = new Set<string>()
  try {
    for (let round = 0; round < rounds; round++) {
      await Promise.all(workers.map(({ ready }) => ready))
      const first = Date.now() + AHEAD_MS
      const schedules = Array.from({ length: SCHEDULES }, (_, i) => {
        return { id: `${round}-${i}`, at: new Date(first + i * SPREAD_MS).toISOString() }
      })
      for (const { id } of schedules) ids.add(id)
      const at = random.integer(0, workers.length - 1)
      await workers[at]?.ask({ kind: 'set', schedules })
      await pause(Math.max(0, first + random.integer(-5, 2 * SCHEDULES * SPREAD_MS) - Date.now()))
      // Not always the node that wrote them.
      const victim = random.integer(0, workers.length - 1)
      await workers[victim]?.kill()
      workers[victim] = start()
      if ((round + 1) % 50 === 0) log(`round ${round + 1}: ${recognized} repeated sends recognized`)
    }
    await Promise.all(workers.map(({ ready }) => ready))
    await settled(workers)
  } finally {
    for (const worker of workers) await worker.kill()
  }
  await countMessages(engine, place, ids, violations)
  return { kills: rounds, dueTimes: ids.size, recognized }
}

async function settled([worker]: readonly Worker[]): Promise<void> {
  const end = performance.now() + SETTLE_MS
  while (performance.now() < end) {
    const report = await worker?.ask({ kind: 'count' })
    if (report?.kind === 'count' && report.waiting === 0) return
    await pause(100)
  }
}

async function countMessages(
  engineName: ScheduleRoundsOptions['engine'],
  place: string,
  ids: ReadonlySet<string>,
  violations: ScheduleViolations,
): Promise<void> {
  await using engine =
    engineName === 'embedded' ? await openEmbeddedEngine({ path: place }) : await openNatsEngine({ servers: [place] })
  const { system } = createBroker(engine)
  const counts = new Map<string, number>()
  for await (const { tags } of messagesOf(system)) {
    const id = tags['schedule_id'] ?? ''
    counts.set(id, (counts.get(id) ?? 0) + 1)
  }
  for (const id of ids) {
    const count = counts.get(id) ?? 0
    if (count === 0) violations.add('lost', id)
    if (count > 1) violations.add('doubled', `${id}: ${count} messages`)
  }
}

async function* messagesOf({ eventsStore, queues }: BrokerHandle): AsyncGenerator<Message, void, void> {
  for (const read of [eventsStore.read.bind(eventsStore), queues.peek.bind(queues)]) {
    for (let fromSequence = 1; ;) {
      const page = await read(CHANNEL, { fromSequence, maxMessages: 1_000 })
      yield* page
      const last = page.at(-1)
      if (last === undefined) break
      fromSequence = last.sequence + 1
    }
  }
}

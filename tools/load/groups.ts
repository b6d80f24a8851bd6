import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { NatsServer } from '@signalbox/engine-nats/testing'
import { commandLine, number, print, progress, text } from '@signalbox/testkit/command-line'
import { spreadOf, spreadText } from '@signalbox/testkit/figures'
import { GroupTrace } from '@signalbox/testkit/group-trace'
import { MeasuredProcess } from '@signalbox/testkit/measured-process'
import { Random } from '@signalbox/testkit/random'
import { TemporaryFolder } from '@signalbox/testkit/temporary-folder'

import type {
  FairMeasurement,
  GroupDelivery,
  GroupEngine,
  GroupReport,
  GroupWorkerOptions,
  OrderMeasurement,
} from './group-worker.ts'

/** The limits of the measurements: the heap above that of an idle process, and the 99th percentile of receives. */
const HEAP_MIB = 64
const RECEIVE_MS = 5

/** Checks the order of groups through kills, and measures how groups are served. */
export async function main(args: string[]): Promise<void> {
  const { values } = commandLine(
    {
      usage: 'npm run soak -- groups [options]',
      about: `Sends messages of many groups to one ordered queue, and receives them while the broker is killed, messages are
nacked, leases lapse, and dead letters are sent again. An independent checker reads only the sends and deliveries. Then
measures the memory and the times of receives with as many groups, and how long a hundred small groups of a fair queue
wait next to a large one. Exits with 1 if the order was broken or a message was lost, or at limits with --budget.`,
    },
    {
      messages: number('N', 'messages', 1_000_000),
      groups: number('N', 'groups', 100_000),
      seconds: number('N', 'the longest life of a broker', 20),
      engine: text('NAME', 'the engine: embedded or nats, with which only the order is checked', 'embedded'),
      seed: number('N', 'the seed of the lives and of the endings', 1),
      budget: number('N', `1 to fail above ${HEAP_MIB} MiB and ${RECEIVE_MS} ms`, 0),
    },
    args,
  )
  const engine = GROUP_ENGINES.find((name) => name === values.engine)
  if (engine === undefined) throw new Error(`--engine ${values.engine}: allowed are ${GROUP_ENGINES.join(', ')}`)
  const order = await groupOrder({ ...values, engine, log: progress })
  print(
    `${order.deliveries} deliveries of ${values.messages} messages in ${values.groups} groups, ${order.kills} kills`,
  )
  print(`${order.nacked} nacked, ${order.lapsed} lapsed, ${order.redriven} sent again; ${order.lost} lost`)
  process.exitCode = order.lost === 0 ? 0 : 1
  if (engine === 'nats') return
  const measured = await measureOrder(values)
  const receive = spreadOf(measured.receiveMs)
  const aboveIdle = measured.peakMib - measured.idleMib
  print(`receives of ten messages: ${spreadText(receive)}; ${measured.cpuMicros.toFixed(0)} µs of processor a message`)
  print(`heap: ${measured.idleMib.toFixed(1)} MiB idle, at most ${aboveIdle.toFixed(1)} MiB more`)
  const { waits } = await measureFair({ messages: Math.ceil(values.messages / 10), groups: 100 })
  const last = waits.at(-1) ?? [Infinity, Infinity]
  print(`fair: ${waits.length} of 100 small groups were served within ${last[0]} deliveries, ${last[1].toFixed(0)} ms`)
  const isOver = values.budget > 0 && (aboveIdle > HEAP_MIB || receive.p99 > RECEIVE_MS)
  process.exitCode = order.lost === 0 && waits.length === 100 && !isOver ? 0 : 1
}

const GROUP_ENGINES: readonly GroupEngine[] = ['embedded', 'nats']

export interface GroupOrderOptions {
  readonly engine: GroupEngine
  readonly messages: number
  readonly groups: number
  /** The longest life of a broker, in seconds. */
  readonly seconds: number
  readonly seed: number
  readonly log: (line: string) => void
}

export interface GroupOrderReport {
  readonly kills: number
  readonly deliveries: number
  readonly nacked: number
  readonly lapsed: number
  readonly redriven: number
  readonly lost: number
}

const WORKER = fileURLToPath(new URL('group-worker.ts', import.meta.url))

function startWorker(
  options: Partial<GroupWorkerOptions> & Pick<GroupWorkerOptions, 'engine' | 'place' | 'mode'>,
): MeasuredProcess {
  const all = { seed: 1, messages: 0, groups: 1, next: 0, ...options }
  return new MeasuredProcess({ script: WORKER, args: [JSON.stringify(all)], nodeArgs: ['--expose-gc'] })
}

/**
 * The events of all brokers, which feed the checker. A message whose removal was requested when a broker was killed may
 * exist or not: it counts as removed until it comes again. So does one that may have been delivered for the only time on
 * NATS: there a delivery to a broker that was killed counts.
 */
class GroupLedger {
  readonly #trace = new GroupTrace(false)
  readonly #numbers = new Map<number, GroupDelivery>()
  readonly #acked = new Set<number>()
  readonly #held = new Set<number>()
  readonly #lapsing = new Set<number>()
  readonly #ending = new Set<number>()
  readonly #uncertain = new Set<number>()
  readonly #dying = new Set<number>()
  readonly #engine: GroupEngine
  readonly #messages: number
  next = 0
  lastReport = performance.now()
  deliveries = 0
  nacked = 0
  lapsed = 0
  redriven = 0

  constructor(engine: GroupEngine, messages: number) {
    this.#engine = engine
    this.#messages = messages
    this.#trace.setMode({ ordered: true, limit: 1 })
  }

  get isComplete(): boolean {
    return (
      this.next >= this.#messages && this.#trace.size + this.#ending.size === 0 && this.#acked.size === this.#messages
    )
  }

  get lost(): number {
    let lost = 0
    for (let n = 0; n < this.#messages; n++) if (!this.#acked.has(n)) lost++
    return lost
  }

  /** Returns whether a message may exist after its acknowledgement was requested. */
  mayExist(sequence: number): boolean {
    return this.#uncertain.has(sequence)
  }

  take(report: GroupReport): void {
    this.lastReport = performance.now()
    switch (report.step) {
      case 'sent':
        if (report.next === undefined) this.redriven += report.sent.length
        else this.next = report.next
        for (const message of report.sent) this.#know(message)
        return
      case 'leased':
        for (const message of report.messages) this.#leased(message)
        return
      case 'lapsing':
        this.lapsed += report.sequences.length
        for (const sequence of report.sequences) this.#lapsing.add(sequence)
        return
      case 'ending':
        for (const sequence of report.acked) this.#acked.add(this.#numbers.get(sequence)?.[2] ?? -1)
        for (const sequence of [...report.acked, ...report.dead]) {
          this.#ending.add(sequence)
          this.#held.delete(sequence)
          this.#dying.delete(sequence)
          this.#trace.ended(sequence)
        }
        this.nacked += report.dead.length + report.returned.length
        for (const sequence of report.returned) this.#returned(sequence)
        return
      case 'ended':
        for (const sequence of report.sequences) this.#ending.delete(sequence)
        return
      case 'failed':
        throw new Error(report.text)
      case 'ready':
      case 'left':
      case 'order':
      case 'fair':
    }
  }

  /** A receiver may report a message before its sender does. */
  #know(message: GroupDelivery): void {
    const [sequence, group, , dies] = message
    if (this.#numbers.has(sequence)) return
    if (dies && this.#engine === 'nats') this.#dying.add(sequence)
    this.#numbers.set(sequence, message)
    this.#trace.sent(sequence, String(group))
  }

  #leased(message: GroupDelivery): void {
    const [sequence, group] = message
    this.deliveries++
    this.#know(message)
    if (this.#uncertain.delete(sequence)) this.#trace.sent(sequence, String(group))
    if (this.#lapsing.delete(sequence)) this.#returned(sequence)
    this.#trace.delivered(sequence)
    this.#held.add(sequence)
  }

  #returned(sequence: number): void {
    this.#held.delete(sequence)
    this.#trace.returned(sequence)
  }

  /** The broker was killed: leases end with it, and requested removals may be done or not. */
  killed(): void {
    for (const sequence of this.#held) this.#trace.returned(sequence)
    const delivered = [...this.#dying].filter((sequence) => this.#trace.isNext(sequence))
    for (const sequence of delivered) {
      this.#trace.ended(sequence)
      this.#uncertain.add(sequence)
    }
    for (const sequence of this.#ending) this.#uncertain.add(sequence)
    for (const set of [this.#held, this.#lapsing, this.#ending]) set.clear()
  }
}

/** A broker without reports for so long has nothing left, or is stuck, in ms. */
const QUIET_MS = 30_000

/** Kills brokers that serve an ordered queue until every message was acknowledged. @throws AssertionError */
export async function groupOrder({ log, ...options }: GroupOrderOptions): Promise<GroupOrderReport> {
  await using folder = await TemporaryFolder.create('groups')
  await using nats = options.engine === 'nats' ? await NatsServer.start() : undefined
  const place = nats?.url ?? folder.path
  const ledger = new GroupLedger(options.engine, options.messages)
  const random = new Random(options.seed)
  let kills = 0
  let quiet = false
  while (!ledger.isComplete && !quiet) {
    const life = (0.2 + 0.8 * random.next()) * options.seconds * 1_000
    quiet = await runLife(ledger, { ...options, place, seed: random.integer(1, 2 ** 30), life })
    kills++
    log(`kill ${kills}: ${ledger.next} sent, ${ledger.deliveries} deliveries`)
  }
  const left = (await messagesLeft(options.engine, place)).filter((sequence) => !ledger.mayExist(sequence)).length
  const { deliveries, nacked, lapsed, redriven, lost } = ledger
  return { kills, deliveries, nacked, lapsed, redriven, lost: lost + left }
}

interface LifeOptions extends Omit<GroupOrderOptions, 'log'> {
  readonly place: string
  readonly life: number
}

/** Runs one broker until its end; returns true if it reported nothing for a while. */
async function runLife(ledger: GroupLedger, { life, ...options }: LifeOptions): Promise<boolean> {
  const { engine, place, seed, messages, groups } = options
  const worker = startWorker({ engine, place, mode: 'work', seed, messages, groups, next: ledger.next })
  const ready = Promise.withResolvers<undefined>()
  const closed = Promise.withResolvers<undefined>()
  const failures: unknown[] = []
  worker.child.on('message', (message) => {
    const report = message as GroupReport
    if (report.step === 'ready') ready.resolve(undefined)
    try {
      ledger.take(report)
    } catch (error) {
      failures.push(error)
    }
  })
  worker.child.once('disconnect', () => {
    ready.resolve(undefined)
    closed.resolve(undefined)
  })
  await ready.promise
  const end = performance.now() + life
  ledger.lastReport = performance.now()
  let quiet = false
  while (performance.now() < end && !ledger.isComplete && !quiet && failures.length === 0 && !worker.exited) {
    await pause(50)
    quiet = performance.now() - ledger.lastReport > QUIET_MS
  }
  if (worker.exited) failures.push(new Error(`the worker ended\n${worker.output}`))
  await worker.kill()
  await closed.promise
  for (const failure of failures) throw failure
  ledger.killed()
  return quiet
}

/** Resolves with the first report of a worker that is asked for one, which ends then. */
async function reportOf(worker: MeasuredProcess): Promise<GroupReport> {
  await using held = worker
  return await new Promise((resolve, reject) => {
    held.child.on('message', (message) => {
      const report = message as GroupReport
      if (report.step !== 'ready') resolve(report)
    })
    held.child.once('exit', () => reject(new Error(`the worker ended\n${held.output}`)))
  })
}

/** Returns the sequences of the messages that are left in the queue. */
async function messagesLeft(engine: GroupEngine, place: string): Promise<readonly number[]> {
  const report = await reportOf(startWorker({ engine, place, mode: 'left' }))
  if (report.step !== 'left') throw new Error(`unexpected report: ${report.step}`)
  return report.sequences
}

/** Resolves with the report of a worker that measures, with a new store. */
async function measure(options: Pick<GroupWorkerOptions, 'mode' | 'messages' | 'groups'>): Promise<GroupReport> {
  await using folder = await TemporaryFolder.create('groups')
  return await reportOf(startWorker({ ...options, engine: 'embedded', place: folder.path }))
}

type Size = Pick<GroupWorkerOptions, 'messages' | 'groups'>

export async function measureOrder({ messages, groups }: Size): Promise<OrderMeasurement> {
  const report = await measure({ mode: 'measure-order', messages, groups })
  if (report.step !== 'order') throw new Error(`unexpected report: ${report.step}`)
  return report.report
}

export async function measureFair({ messages, groups }: Size): Promise<FairMeasurement> {
  const report = await measure({ mode: 'measure-fair', messages, groups })
  if (report.step !== 'fair') throw new Error(`unexpected report: ${report.step}`)
  return report.report
}

import { fileURLToPath } from 'node:url'

import { MeasuredProcess } from '@signalbox/testkit/measured-process'
import type { Random } from '@signalbox/testkit/random'

import type { Violations } from '../load/ledgers.ts'
import type { CoreReport } from './core-worker.ts'

export interface CoreFigures {
  readonly rounds: number
  readonly killedStarting: number
  readonly sent: number
  readonly acked: number
  /** The number of messages leased again after a kill, a nack or an expiry. */
  readonly redelivered: number
}

export interface CoreRoundsOptions {
  readonly rounds: number
  readonly maxLifeMs: number
  readonly path: string
  readonly random: Random
  readonly violations: Violations
  readonly log: (line: string) => void
}

const WORKER = fileURLToPath(new URL('core-worker.ts', import.meta.url))
const KILLED_STARTING = 0.1

/** The harness's record of leased receive: confirmations reach it over a pipe that outlives the worker. */
class CoreLedger {
  readonly #violations: Violations
  readonly sent = new Set<string>()
  readonly acked = new Set<string>()
  readonly #delivered = new Set<string>()
  /** An ack was requested; its outcome is unknown. */
  readonly #acking = new Set<string>()
  #held = new Set<string>()
  redelivered = 0

  constructor(violations: Violations) {
    this.#violations = violations
  }

  take(report: CoreReport): void {
    switch (report.step) {
      case 'sent':
        this.sent.add(report.id)
        return
      case 'leased':
        if (this.acked.has(report.id)) this.#violations.add('afterAck', report.id)
        if (this.#held.has(report.id)) this.#violations.add('twoHolders', report.id)
        if (this.#delivered.has(report.id)) this.redelivered++
        this.#delivered.add(report.id)
        this.#acking.delete(report.id)
        if (!report.lapses) this.#held.add(report.id)
        return
      case 'nacking':
        this.#held.delete(report.id)
        return
      case 'acking':
        this.#acking.add(report.id)
        return
      case 'acked':
        this.#acking.delete(report.id)
        this.#held.delete(report.id)
        this.acked.add(report.id)
        return
      case 'failed':
        this.#violations.add('failed', report.text)
        return
      case 'ready':
      case 'drained':
    }
  }

  /** Leases do not outlive the process. */
  restart(): void {
    this.#held = new Set()
  }

  finish(): void {
    for (const id of this.sent) {
      if (this.acked.has(id) || this.#acking.has(id)) continue
      this.#violations.add('lost', `${id} (leased receive)`)
    }
  }
}

/** Starts a worker; `ready` resolves when its engine is open or the worker has ended. */
function startWorker(options: CoreRoundsOptions, ledger: CoreLedger, seed: number, mode: string) {
  const worker = new MeasuredProcess({ script: WORKER, args: [options.path, String(seed), mode] })
  const ready = Promise.withResolvers<undefined>()
  const drained = Promise.withResolvers<undefined>()
  // The worker disconnects after the last byte of the pipe, so confirmations that were in transit at the kill count.
  const closed = new Promise<void>((resolve) => worker.child.once('disconnect', resolve))
  worker.child.on('message', (message) => {
    const report = message as CoreReport
    if (report.step === 'ready') ready.resolve(undefined)
    if (report.step === 'drained') drained.resolve(undefined)
    ledger.take(report)
  })
  // Not `exit`, which can come before the last reports.
  worker.child.once('disconnect', () => {
    const error = new Error(`the worker ended\n${worker.output}`)
    ready.reject(error)
    drained.reject(error)
  })
  ready.promise.catch(() => undefined)
  drained.promise.catch(() => undefined)
  return { worker, ready: ready.promise, drained: drained.promise, closed }
}

/** Kills a broker repeatedly while it leases, acknowledges and rejects messages and lets leases expire. */
export async function coreRounds(options: CoreRoundsOptions): Promise<CoreFigures> {
  const { random, violations, log } = options
  const ledger = new CoreLedger(violations)
  let killedStarting = 0
  for (let number = 1; number <= options.rounds; number++) {
    const { worker, ready, closed } = startWorker(options, ledger, random.integer(1, 2 ** 30), 'work')
    if (random.chance(KILLED_STARTING)) killedStarting++
    else await ready
    await new Promise((resolve) => setTimeout(resolve, random.integer(20, options.maxLifeMs)))
    await worker.kill()
    await closed
    ledger.restart()
    if (number % 10 === 0) log(`core round ${number}: ${ledger.sent.size} sent, ${ledger.acked.size} acknowledged`)
  }
  const last = startWorker(options, ledger, 0, 'drain')
  await last.drained
  await last.closed
  ledger.finish()
  return {
    rounds: options.rounds,
    killedStarting,
    sent: ledger.sent.size,
    acked: ledger.acked.size,
    redelivered: ledger.redelivered,
  }
}

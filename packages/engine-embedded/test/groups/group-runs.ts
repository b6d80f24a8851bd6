import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'

import type { QueueDelivery } from '@signalbox/broker-core'
import { GroupTrace } from '@signalbox/testkit/group-trace'
import * as fc from 'fast-check'

import { Store } from '../model/session.ts'
import { queued } from '../support/store.ts'

const CLIENT = 'group-client'
const LEASE_MS = 600_000
/** The wait for a message that must come. */
const PATIENCE_MS = 10_000

const SETTINGS = {
  ordered: { mode: 'ordered', max_in_flight_per_group: 1 },
  fair: { mode: 'fair', max_in_flight_per_group: 0 },
  fair2: { mode: 'fair', max_in_flight_per_group: 2 },
  none: undefined,
} as const

type Mode = keyof typeof SETTINGS

/** A run on a queue of its own. The trace knows what the commands did and what came, and nothing else. */
class GroupRun {
  readonly store: Store
  readonly trace = new GroupTrace(true)
  readonly leases: QueueDelivery[] = []
  readonly stale: QueueDelivery[] = []
  readonly queue = `groups-${randomUUID()}`
  readonly dead = `dead-${randomUUID()}`
  mode: Mode = 'none'

  constructor(store: Store) {
    this.store = store
  }

  setMode(mode: Mode): void {
    this.mode = mode
    const groups = SETTINGS[mode]
    this.store.engine.settings.replace(groups ? [{ type: 'queues', match: this.queue, source: 'api', groups }] : [])
    this.trace.setMode(groups && { ordered: mode === 'ordered', limit: groups.max_in_flight_per_group })
  }

  async send(groups: readonly string[], maxReceiveCount: number): Promise<void> {
    const messages = groups.map((group) =>
      queued('x', { tags: group === '' ? {} : { group }, maxReceiveCount, deadLetterQueue: this.dead }),
    )
    const results = await this.store.engine.queues.sendBatch(this.queue, messages)
    for (const [i, { sequence }] of results.entries()) this.trace.sent(sequence, groups[i] ?? '')
  }

  /** Receives until there are `maxMessages`, or nothing is deliverable: one call may return less. */
  async receive(maxMessages: number): Promise<void> {
    const isDue = this.trace.deliverable > 0
    const waitMs = isDue ? PATIENCE_MS : 0
    const options = { maxMessages, waitMs, leaseMs: LEASE_MS, clientId: CLIENT }
    const deliveries = await this.store.engine.queues.receive(this.queue, options)
    for (const delivery of deliveries) this.trace.delivered(delivery.message.sequence)
    this.leases.push(...deliveries)
    assert.equal(deliveries.length > 0, isDue, 'a message comes if one is deliverable')
    if (deliveries.length < maxMessages && this.trace.deliverable > 0) {
      await this.receive(maxMessages - deliveries.length)
    }
  }

  /** Records the end of leases as by a nack, which may move messages to the dead-letter queue. */
  returned(deliveries: readonly QueueDelivery[]): void {
    for (const { message } of deliveries) {
      const { sequence, receiveCount, maxReceiveCount } = message
      if (maxReceiveCount > 0 && receiveCount >= maxReceiveCount) this.trace.ended(sequence)
      else this.trace.returned(sequence)
    }
  }

  pick(picks: readonly number[]): QueueDelivery[] {
    const picked: QueueDelivery[] = []
    for (const n of picks) {
      if (this.leases.length > 0) picked.push(...this.leases.splice(n % this.leases.length, 1))
    }
    this.stale.push(...picked)
    return picked
  }

  /** Waits until the engine has ended leases that have lapsed. */
  async settled(): Promise<void> {
    const end = Date.now() + PATIENCE_MS
    for (;;) {
      const state = await this.store.engine.channels.info('queues', this.queue)
      if ((state?.queue?.inFlight ?? 0) === this.trace.leased) return
      assert.ok(Date.now() < end, 'the leases end')
      await pause(2)
    }
  }
}

type Command = fc.AsyncCommand<object, GroupRun>

function command(name: string, run: (run: GroupRun) => Promise<void>): Command {
  return { check: () => true, run: (_, session) => run(session), toString: () => name }
}

const picks = fc.array(fc.nat(), { minLength: 1, maxLength: 4 })

const send = fc
  .tuple(
    fc.array(fc.constantFrom('a', 'a', 'b', 'c', 'é', '\u{1F600}', '\uFB01', ''), { minLength: 1, maxLength: 6 }),
    fc.constantFrom(0, 0, 1, 2),
  )
  .map(([groups, max]) => command(`send(${groups.join()}; ${max})`, (run) => run.send(groups, max)))

const receive = fc.integer({ min: 1, max: 5 }).map((max) => command(`receive(${max})`, (run) => run.receive(max)))

const ack = picks.map((all) =>
  command(`ack(${all.join()})`, async (run) => {
    const picked = run.pick(all)
    if (picked.length === 0) return
    await run.store.engine.queues.ack(
      picked.map(({ receipt }) => receipt),
      CLIENT,
    )
    for (const { message } of picked) run.trace.ended(message.sequence)
  }),
)

const nack = picks.map((all) =>
  command(`nack(${all.join()})`, async (run) => {
    const picked = run.pick(all)
    if (picked.length === 0) return
    await run.store.engine.queues.nack(
      picked.map(({ receipt }) => receipt),
      CLIENT,
    )
    run.returned(picked)
  }),
)

const lapse = fc.nat().map((n) =>
  command(`lapse(${n})`, async (run) => {
    const picked = run.pick([n])
    const receipts = picked.map(({ receipt }) => receipt)
    if (picked.length === 0) return
    await run.store.engine.queues.extend(receipts, CLIENT, 1)
    await pause(5)
    assert.deepEqual((await run.store.engine.queues.ack(receipts, CLIENT)).lost, receipts, 'a late ack is lost')
    run.returned(picked)
    await run.settled()
  }),
)

const purge = fc.constant(
  command('purge', async (run) => {
    assert.equal(await run.store.engine.queues.purge(run.queue), run.trace.purged())
  }),
)

const change = fc
  .constantFrom<Mode>('ordered', 'ordered', 'fair', 'fair2', 'none')
  .map((mode) => command(`settings(${mode})`, async (run) => run.setMode(mode)))

const restart = fc.constant(
  command('restart', async (run) => {
    await run.store.restart()
    run.returned(run.leases.splice(0))
    run.trace.restarted()
    run.setMode(run.mode)
  }),
)

const often = [send, send, send, receive, receive, receive, receive, ack, ack, nack, lapse, change]
const commands = [...often, ...often, ...often, purge, restart]

/** Receives and acknowledges what is left. */
async function drain(run: GroupRun): Promise<void> {
  for (;;) {
    if (run.leases.length > 0) {
      const receipts = run.leases.map(({ receipt }) => receipt)
      await run.store.engine.queues.ack(receipts, CLIENT)
      for (const { message } of run.leases.splice(0)) run.trace.ended(message.sequence)
    }
    if (run.trace.size === 0) break
    await run.receive(5)
    assert.ok(run.leases.length > 0, `${run.trace.size} messages are lost`)
  }
  assert.equal((await run.store.engine.queues.peek(run.queue, { maxMessages: 1 })).length, 0)
}

/** Runs random commands on queues with groups, and checks their traces. */
export async function runGroups(seed: number, runs: number, limitMs: number): Promise<void> {
  const store = await Store.open()
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom<Mode>('ordered', 'fair', 'fair2', 'none'),
        fc.commands(commands, { maxCommands: 60, size: '+1' }),
        async (mode, all) => {
          const run = new GroupRun(store)
          run.setMode(mode)
          await fc.asyncModelRun(() => ({ model: {}, real: run }), all)
          await drain(run)
        },
      ),
      { seed, numRuns: runs, interruptAfterTimeLimit: limitMs, markInterruptAsFailure: true },
    )
  } finally {
    await store.close()
  }
}

// A node with schedules in a separate process, to be killed. It reports over a pipe.
import { createBroker } from '@signalbox/broker-core'
import type { FireOutcome } from '@signalbox/channel-settings'
import { Schedules } from '@signalbox/channel-settings'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { openNatsEngine } from '@signalbox/engine-nats'

/** Asks the worker to write schedules with one due time each, or for the number of those without a message. */
export type ScheduleRequest =
  | { readonly kind: 'set'; readonly schedules: readonly { readonly id: string; readonly at: string }[] }
  | { readonly kind: 'count' }

export type ScheduleReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'set' }
  | { readonly kind: 'count'; readonly waiting: number }
  | { readonly kind: 'fired'; readonly outcome: FireOutcome }

const [engineName, place = '', channel = ''] = process.argv.slice(2)

function report(message: ScheduleReport): void {
  process.send?.(message)
}

const engine =
  engineName === 'embedded' ? await openEmbeddedEngine({ path: place }) : await openNatsEngine({ servers: [place] })
const { system } = createBroker(engine)
const schedules = await Schedules.open(system, {
  engine,
  fired: (outcome) => report({ kind: 'fired', outcome }),
  failed: (error) => console.error(error),
})
process.on('message', (request: ScheduleRequest) => {
  if (request.kind === 'count') {
    const waiting = schedules.list().filter(({ record }) => record.sent === undefined).length
    report({ kind: 'count', waiting })
    return
  }
  const writes = request.schedules.map(({ id, at }, i) => {
    // Half of the schedules send to each.
    const target = { type: i % 2 === 0 ? ('queues' as const) : ('events_store' as const), channel }
    return schedules.set({ id, at, target, message: { body: id } }, 'crash')
  })
  void Promise.all(writes).then(() => report({ kind: 'set' }))
})
report({ kind: 'ready' })

// Sends to JetStream in a separate process: through the engine, through a Broker over it, or directly.
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { ANONYMOUS, createBroker } from '@signalbox/broker-core'
import { openNatsEngine } from '@signalbox/engine-nats'
import { serveCalls } from '@signalbox/testkit/calls'

import type { Work } from './work.ts'
import { measure } from './work.ts'

const [server = ''] = process.argv.slice(2)
const CHANNEL = 'bench'
const STREAM = 'bare'

interface Load {
  readonly members: number
  readonly durationMs: number
  readonly bytes: number
}

let step: ((body: Uint8Array) => Promise<unknown>) | undefined

serveCalls({
  /** Measures the publisher of nats.js on a plain work queue. */
  openBare: async () => {
    const connection = await connect({ servers: server })
    const manager = await jetstreamManager(connection)
    await manager.streams.add({ name: STREAM, subjects: [STREAM], retention: 'workqueue' })
    const publisher = jetstream(connection)
    step = (body) => publisher.publish(STREAM, body)
  },
  openBroker: async () => {
    const { broker } = createBroker(await openNatsEngine({ servers: [server] }))
    const { queues } = broker.as(ANONYMOUS)
    step = (body) => queues.send(CHANNEL, { body })
  },
  send: ({ members, durationMs, bytes }: Load): Promise<Work> => {
    const body = new Uint8Array(bytes).fill(0x61)
    return measure(members, durationMs, async () => {
      await step?.(body)
      return 1
    })
  },
})
process.once('SIGTERM', () => process.exit(0))

// A host of the CloudEvents connector in a separate process, which publishes to its own subscribers on request. The
// packages come from the checkout whose entries are its arguments; the last argument is the folder of its store.
import type * as Core from '@signalbox/broker-core'
import type * as CloudEvents from '@signalbox/connector-cloudevents/fastify'
import type * as Embedded from '@signalbox/engine-embedded'
import { answerCalls } from '@signalbox/testkit/calls'
import fastify from 'fastify'

import { fastifyEntry, pluginOf } from './plugin-of.ts'

const [coreEntry = '', engineEntry = '', connectorEntry = '', storePath = ''] = process.argv.slice(2)
const { ANONYMOUS, createBroker } = (await import(coreEntry)) as typeof Core
const { openEmbeddedEngine } = (await import(engineEntry)) as typeof Embedded
/** A checkout from before the factories had one shape calls it `cloudeventsConnector`. */
type AnyCloudEvents = typeof CloudEvents & { readonly cloudeventsConnector?: typeof CloudEvents.ceConnector }
const { ceConnector, cloudeventsConnector = ceConnector } = (await import(
  fastifyEntry(connectorEntry)
)) as AnyCloudEvents

const engine = await openEmbeddedEngine({ path: storePath })
const { broker } = createBroker(engine)
const app = fastify({ forceCloseConnections: true })
await app.register(pluginOf(cloudeventsConnector(broker)))

export interface Publishing {
  readonly channel: string
  readonly events: number
  readonly perSecond: number
  readonly bytes: number
}

answerCalls({
  /** Publishes at an even rate; resolves after the last one. */
  publish: async ({ channel, events, perSecond, bytes }: Publishing) => {
    const { events: handle } = broker.as(ANONYMOUS)
    const body = Buffer.from(JSON.stringify('x'.repeat(bytes - 2)))
    const tags = { ce_specversion: '1.0', ce_id: '1', ce_source: '/bench', ce_type: 'bench.event' }
    const begin = performance.now()
    for (let sent = 0; sent < events;) {
      const due = Math.min(events, Math.ceil(((performance.now() - begin) / 1000) * perSecond))
      while (sent < due) {
        await handle.publish(channel, { body, tags })
        sent++
      }
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  },
})
process.stdout.write(`listening on ${await app.listen({ host: '127.0.0.1', port: 0 })}\n`)
process.once('SIGTERM', () => {
  void app
    .close()
    .then(() => engine.close())
    .then(() => process.exit(0))
})

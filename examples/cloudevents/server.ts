// Publish, subscribe and respond over CloudEvents at /ce, with a web page. PORT is the port,
// STORE_PATH the folder of the store.
import { readFile } from 'node:fs/promises'

import { createBroker } from '@signalbox/broker-core'
import { ceConnector } from '@signalbox/connector-cloudevents/fastify'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'
import { fastify } from 'fastify'

const { PORT = '3000', STORE_PATH = './data' } = process.env
const engine = await openEmbeddedEngine({ path: STORE_PATH })
const { broker } = createBroker(engine)

// Closes clients' idle connections at once; otherwise they delay the shutdown for half a minute.
const app = fastify({ forceCloseConnections: true })
const page = await readFile(new URL('page.html', import.meta.url), 'utf8')
app.get('/', (_request, reply) => reply.type('text/html').send(page))
await app.register(ceConnector(broker).plugin)
app.addHook('onClose', () => engine.close())

console.log(`listening on ${await app.listen({ host: '127.0.0.1', port: Number(PORT) })}`)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void app.close())

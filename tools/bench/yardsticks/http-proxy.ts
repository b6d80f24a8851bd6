// The yardstick of calls to agents: Fastify with @fastify/http-proxy and default settings, in front of an agent.
import proxy from '@fastify/http-proxy'
import fastify from 'fastify'

const [upstream = ''] = process.argv.slice(2)
const app = fastify()
await app.register(proxy, { upstream })
process.stdout.write(`listening on ${await app.listen({ host: '127.0.0.1', port: 0 })}\n`)
process.once('SIGTERM', () => void app.close().then(() => process.exit(0)))

// The yardstick of every HTTP row: Fastify with default settings, a POST of JSON, the same JSON as the answer.
import fastify from 'fastify'

const app = fastify()
app.post('/echo', (request) => request.body)
const url = await app.listen({ host: '127.0.0.1', port: 0 })
process.stdout.write(`listening on ${url}\n`)
process.once('SIGTERM', () => void app.close().then(() => process.exit(0)))

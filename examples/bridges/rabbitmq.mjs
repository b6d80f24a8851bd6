// Moves the messages of a RabbitMQ queue to a Signalbox queue, and keeps moving them until Ctrl-C.
// node rabbitmq.mjs QUEUE [CHANNEL]    AMQP_URL, SIGNALBOX_URL and SIGNALBOX_TOKEN say where and as whom.
import { connect } from '@signalbox/client'
import amqp from 'amqplib'

const [queue = 'jobs', channel = queue] = process.argv.slice(2)
const { AMQP_URL = 'amqp://127.0.0.1', SIGNALBOX_URL = 'http://127.0.0.1:9090', SIGNALBOX_TOKEN: token } = process.env
const sb = connect(SIGNALBOX_URL, { source: '/rabbitmq', ...(token && { token }) })
const connection = await amqp.connect(AMQP_URL)
const from = await connection.createChannel()
await from.prefetch(100)

async function move(message) {
  const { messageId: id, contentType = '' } = message.properties
  try {
    let data = new Uint8Array(message.content)
    if (contentType.startsWith('text/')) data = message.content.toString()
    if (contentType.includes('json')) data = JSON.parse(message.content)
    await sb.queue(channel).send(data, { id })
    from.ack(message)
  } catch (error) {
    console.error(`not moved, and left in RabbitMQ: ${error.message}`)
  }
}

const { consumerTag } = await from.consume(queue, (message) => void move(message))
console.log(`moving messages from ${queue} to ${channel}`)
const stop = () => from.cancel(consumerTag).then(() => connection.close())
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void stop())

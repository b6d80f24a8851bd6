// A process that appends entries and handles them in a durable group until it is killed, and prints each that it
// handled.
import { randomUUID } from 'node:crypto'
import { writeSync } from 'node:fs'

import { encodeText } from '@signalbox/broker-core'
import { openEmbeddedEngine } from '@signalbox/engine-embedded'

const [path = ''] = process.argv.slice(2)
const engine = await openEmbeddedEngine({ path })
await engine.eventsStore.subscribe('log', { from: 'first' }, { group: 'g', durable: true }, async ({ sequence }) => {
  await new Promise((resolve) => setImmediate(resolve))
  writeSync(1, `${sequence}\n`)
})
for (;;) {
  await engine.eventsStore.append('log', {
    id: randomUUID(),
    clientId: 'child',
    body: encodeText('x'),
    metadata: '',
    tags: {},
  })
}

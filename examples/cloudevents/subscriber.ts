// Reads an events store permanently: node subscriber.ts http://127.0.0.1:3000 orders
// After a lost connection it continues after the last event: no event is missed or repeated.
import { setTimeout } from 'node:timers/promises'

const [base = 'http://127.0.0.1:9090', channel = 'orders'] = process.argv.slice(2)
const url = `${base}/ce/subscribe/events-store?channel=${encodeURIComponent(channel)}&events_store_type=2`
let lastId: string | undefined

async function follow(): Promise<void> {
  const response = await fetch(url, { headers: lastId === undefined ? {} : { 'Last-Event-ID': lastId } })
  if (!response.ok || response.body === null) throw new Error(`${response.status} ${await response.text()}`)
  let text = ''
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const blocks = (text + chunk).split('\n\n')
    text = blocks.pop() ?? ''
    for (const block of blocks) handle(new Map(block.split('\n').map((line) => [field(line, 0), field(line, 1)])))
  }
}

function field(line: string, part: 0 | 1): string {
  const at = line.indexOf(': ')
  return part === 0 ? line.slice(0, at) : line.slice(at + 2)
}

function handle(block: ReadonlyMap<string, string>): void {
  const data = block.get('data')
  if (data === undefined) return // A keepalive comment.
  const event = JSON.parse(data)
  console.log(`${block.get('event')} ${block.get('id')} ${event.type} ${JSON.stringify(event.data)}`)
  lastId = block.get('id') ?? lastId
}

for (;;) {
  await follow().catch((error: unknown) => console.error(String(error)))
  await setTimeout(1000)
}

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

import { freePort } from '@signalbox/testkit/free-port'
import { testFolder } from '@signalbox/testkit/test-folder'
import { expect, onTestFinished, test } from 'vitest'

import { serve } from './support/server.ts'

const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/guides/webhooks.md'), 'utf8')

function block(language: string): string {
  return new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(PAGE)?.[1] ?? ''
}

test('webhooks - the receiver of the guide accepts the deliveries of its subscription', async () => {
  const folder = testFolder()
  const port = await freePort()
  const file = join(folder, 'receiver.mjs')
  writeFileSync(file, block('js').replace('listen(8000', `listen(${port}`))
  const subscription = JSON.parse(block('json').replace(':8000', `:${port}`)) as { config: { secret: string } }
  const receiver = spawn(process.execPath, [file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { WEBHOOK_SECRET: subscription.config.secret },
  })
  onTestFinished(() => void receiver.kill())
  const lines = createInterface(receiver.stdout)

  const { http } = await serve({
    webhooks: { enable: true, keyFile: join(folder, 'webhooks.key'), allow: ['127.0.0.1'] },
  })
  const post = (path: string, type: string, body: unknown): Promise<Response> =>
    fetch(`${http.url}${path}`, { method: 'POST', headers: { 'content-type': type }, body: JSON.stringify(body) })
  // The receiver may still be starting.
  await expect
    .poll(async () => (await post('/ce/subscriptions', 'application/json', subscription)).status, { timeout: 20_000 })
    .toBe(201)
  const line = once(lines, 'line')
  for (const [id, type] of [
    ['1', 'order.open'],
    ['2', 'order.paid'],
  ]) {
    const event = { specversion: '1.0', id, source: '/shop', type }
    await post('/ce/send/event-store?channel=orders', 'application/cloudevents+json', event)
  }
  expect(String((await line)[0])).toMatch(/^msg_\S+_2 2$/)
})

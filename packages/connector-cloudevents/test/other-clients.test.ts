import { Buffer } from 'node:buffer'

import { expect, test } from 'vitest'

import { CE_ROUTES } from '../src/index.ts'
import { event, openCe } from './ce-server.ts'

const HEAD = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/t', 'ce-type': 't' }

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

test('CE-7 - clients of other brokers: client_id and wait_timeout are taken by every route', async () => {
  const { base, user } = await openCe({ timeoutSeconds: 0.05 })
  await user.queues.send('c', { body: Buffer.from('1') })
  const [{ receipt } = { receipt: '' }] = await user.queues.receive('c')
  const own: Readonly<Record<string, string>> = { channel: 'c', receipt, request_id: 'r', visibility_seconds: '30' }
  for (const { name, method, input: query } of CE_ROUTES) {
    const parameters = Object.keys(query.properties).filter((parameter) => Object.hasOwn(own, parameter))
    const search = new URLSearchParams(
      Object.fromEntries(parameters.map((parameter) => [parameter, own[parameter] ?? ''])),
    )
    search.set('client_id', 'sensor-7')
    search.set('wait_timeout', '1')
    const response = await fetch(`${base}/ce/${name}?${search.toString()}`, {
      method,
      ...(method === 'POST'
        ? { headers: { 'content-type': 'application/cloudevents+json' }, body: JSON.stringify(event()) }
        : {}),
    })
    expect([name, response.status]).not.toEqual([name, 400])
    await response.body?.cancel()
  }
})

test('CE-3 - data: UTF-8 text leaves as data with its datacontenttype, other bytes as data_base64', async () => {
  const { post, subscribe, user } = await openCe()
  const stream = await subscribe('events?channel=c')
  const cases: readonly [body: string, type: string, expected: Readonly<Record<string, string>>][] = [
    ['grüß dich', 'text/plain', { data: 'grüß dich' }],
    ['<a>ü</a>', 'application/xml', { data: '<a>ü</a>' }],
    ['a=1&b=2', 'application/x-www-form-urlencoded', { data: 'a=1&b=2' }],
    ['key: value', 'application/yaml; charset=utf-8', { data: 'key: value' }],
    ['no JSON', 'application/json', { data_base64: base64('no JSON') }],
    ['text', 'application/octet-stream', { data_base64: base64('text') }],
    ['text', 'text/plain; charset=iso-8859-1', { data_base64: base64('text') }],
  ]
  for (const [body, datacontenttype, expected] of cases) {
    await post('send/event?channel=c', body, { ...HEAD, 'content-type': datacontenttype })
    const { data, data_base64, ...attributes } = await stream.nextJson()
    expect([datacontenttype, { data, data_base64 }]).toEqual([datacontenttype, { data: undefined, ...expected }])
    expect(attributes.datacontenttype).toBe(datacontenttype)
  }
  await post('send/event?channel=c', Buffer.from([0xff, 0x00]), { ...HEAD, 'content-type': 'application/xml' })
  expect(await stream.nextJson()).toMatchObject({ datacontenttype: 'application/xml', data_base64: '/wA=' })

  await user.events.publish('c', { body: Buffer.from('hello, wörld') })
  expect(await stream.nextJson()).toMatchObject({ datacontenttype: 'text/plain', data: 'hello, wörld' })
  await user.events.publish('c', { body: Buffer.from('{"json":true}') })
  const json = await stream.nextJson()
  expect([json.data, json.datacontenttype]).toEqual([{ json: true }, undefined])
  await user.events.publish('c', { body: Buffer.from([0xff, 0x00]) })
  const bytes = await stream.nextJson()
  expect([bytes.data_base64, bytes.datacontenttype]).toEqual(['/wA=', undefined])
})

test('CE-3 - data: text that came as data_base64 leaves as data_base64', async () => {
  const { post, subscribe } = await openCe()
  const stream = await subscribe('events?channel=c')
  for (const datacontenttype of ['text/plain', 'application/xml', 'application/json', 'application/octet-stream']) {
    const sent = event({ datacontenttype, data_base64: Buffer.from('{"n":1}').toString('base64') })
    await post('send/event?channel=c', sent)
    expect(await stream.nextJson()).toEqual(sent)
  }
})

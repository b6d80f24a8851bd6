import { BrokerError } from '@signalbox/broker-core'
import type { BrokerHandle } from '@signalbox/broker-core'
import { AuthenticationError } from '@signalbox/http-kit'
import type { Authenticator } from '@signalbox/http-kit'
import { expect, test } from 'vitest'
import { until } from '@signalbox/testkit/until'

import type { CeConnector, CeConnectorOptions } from '../src/index.ts'
import { ceConnector } from '../src/index.ts'
import { event, openCe, serveHandler } from './ce-server.ts'
import type { CeServer } from './ce-server.ts'
import type { Loose } from '@signalbox/testkit/sse-client'

/** Whoever says its name is believed. */
const byName: Authenticator = {
  authenticate({ headers }) {
    const name = headers.authorization
    if (!name) throw new AuthenticationError('no name')
    return { clientId: name }
  },
}

const ANSWER = event({ id: 'answer', mine: 'kept', data: { n: 1 } })

interface OtherNode {
  readonly connector: CeConnector
  answer(
    id: string,
    query?: string,
    headers?: Readonly<Record<string, string>>,
  ): Promise<{ status: number; code: string }>
}

/** A second endpoint over the same broker: another node, as far as answers go. */
async function openOther({ broker }: CeServer, options: CeConnectorOptions): Promise<OtherNode> {
  const connector = ceConnector(broker, options)
  const base = await serveHandler(connector)
  return {
    connector,
    async answer(id, query = '', headers = {}) {
      const response = await fetch(`${base}/send/response?request_id=${id}${query}`, {
        method: 'POST',
        headers: { 'content-type': 'application/cloudevents+json', ...headers },
        body: JSON.stringify(ANSWER),
      })
      const { data }: Loose = await response.json()
      return { status: response.status, code: data?.code }
    },
  }
}

const UNKNOWN = { status: 404, code: 'REQUEST_UNKNOWN' }

test('CE-11 - answers across nodes: one that reaches another node counts, whole and once', async () => {
  const one = await openCe({ relays: true })
  const two = await openOther(one, { system: one.system })
  const stream = await one.subscribe('queries?channel=q')
  const query = one.post('send/query?channel=q', event())
  const { brokerrequestid: id } = await stream.nextJson()
  expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  expect(await two.answer(id)).toEqual({ status: 202, code: undefined })
  expect(await query).toMatchObject({ status: 200, is_error: false, data: ANSWER })
  expect(one.connector.pendingRequests()).toBe(0)
  expect(await two.answer(id)).toEqual(UNKNOWN)
  expect(await one.post(`send/response?request_id=${id}`, event())).toMatchObject({ status: 404 })

  const rejected = one.post('send/query?channel=q', event())
  const { brokerrequestid: second } = await stream.nextJson()
  expect(await two.answer(second, '&is_error=true')).toMatchObject({ status: 202 })
  expect(await rejected).toMatchObject({ is_error: true, message: 'rejected by the subscriber: {"n":1}' })
})

test('CE-11 - answers across nodes: only the principal that received the request may answer; all others get one text', async () => {
  const one = await openCe({ relays: true, authenticator: byName })
  const two = await openOther(one, { system: one.system, authenticator: byName })
  const ann = { authorization: 'ann' }
  const stream = await one.subscribe('commands?channel=c', ann)
  const command = one.post('send/command?channel=c', event(), ann)
  const { brokerrequestid: id } = await stream.nextJson()
  expect(await two.answer(id, '', { authorization: 'bob' })).toEqual(UNKNOWN)
  expect(one.connector.pendingRequests()).toBe(1)
  expect(await two.answer(id, '', ann)).toMatchObject({ status: 202 })
  expect(await command).toMatchObject({ status: 202, is_error: false })
})

test('CE-11 - answers across nodes: an invented id, or one of a dead node, is 404 at once and creates no channel', async () => {
  const one = await openCe({ relays: true })
  const two = await openOther(one, { system: one.system })
  const stream = await one.subscribe('queries?channel=q')
  const query = one.post('send/query?channel=q', event())
  const { brokerrequestid: id } = await stream.nextJson()
  for (const malformed of ['x', 'reply', `${id}0`, id.toUpperCase()])
    expect(await two.answer(malformed)).toEqual(UNKNOWN)
  const ended = Promise.all(
    Array.from({ length: 10 }, (_, i) => two.answer(`${id.slice(0, 2)}${i}0dead${id.slice(8)}`)),
  )
  expect(await ended).toEqual(Array.from({ length: 10 }, () => UNKNOWN))
  expect(await two.answer(`${id.slice(0, 8)}${id.slice(8).replaceAll(/[0-9a-f]/g, '0')}`)).toEqual(UNKNOWN)
  expect(await two.answer(id)).toMatchObject({ status: 202 })
  await query
  const internal = await one.system.channels.list({ type: 'queries', pattern: '_AGENTS_.replies/' })
  expect(internal).toHaveLength(1)
  expect(await one.user.channels.list({ type: 'queries' })).toHaveLength(1)
})

test('CE-11 - answers across nodes: without the system handle an answer counts at the node of the stream only', async () => {
  const one = await openCe()
  const two = await openOther(one, {})
  const stream = await one.subscribe('commands?channel=c')
  const command = one.post('send/command?channel=c', event())
  const { brokerrequestid: id } = await stream.nextJson()
  expect(await two.answer(id)).toEqual(UNKNOWN)
  expect(await one.post(`send/response?request_id=${id}`, event())).toMatchObject({ status: 202 })
  expect(await command).toMatchObject({ status: 202 })
  expect(await one.system.channels.list({ pattern: '_AGENTS_.' })).toEqual([])
})

test('CE-11 - answers across nodes: a node that shuts down accepts answers to requests in flight', async () => {
  const one = await openCe({ relays: true })
  const two = await openOther(one, { system: one.system })
  const stream = await one.subscribe('commands?channel=c')
  const command = one.post('send/command?channel=c', event())
  const { brokerrequestid: id } = await stream.nextJson()
  const closed = one.connector.close(10_000)
  expect(await two.answer(id)).toMatchObject({ status: 202 })
  expect(await command).toMatchObject({ status: 202, is_error: false })
  await closed
  const subscribers = async () =>
    (await one.system.channels.info('queries', `_AGENTS_.replies/${id.slice(0, 8)}`)).subscribers
  await until(async () => (await subscribers()) === 0)
})

test('CE-11 - answers across nodes: a subscriber that cannot receive answers is not subscribed, and may retry', async () => {
  const one = await openCe()
  let away = true
  const queries = Object.create(one.system.queries, {
    subscribe: {
      value: (...args: Parameters<BrokerHandle['queries']['subscribe']>) =>
        away
          ? Promise.reject(new BrokerError('ENGINE_UNAVAILABLE', 'the engine is away'))
          : one.system.queries.subscribe(...args),
    },
  })
  const system: BrokerHandle = Object.create(one.system, { queries: { value: queries } })
  const connector = ceConnector(one.broker, { system })
  const url = `${await serveHandler(connector)}/subscribe/commands?channel=c`
  expect((await fetch(url)).status).toBe(503)
  expect((await one.user.channels.list({ type: 'commands' })).length).toBe(0)
  away = false
  const stream = await fetch(url)
  expect(stream.status).toBe(200)
  await stream.body?.cancel()
})

import { RawConnection } from '@signalbox/testkit/raw-connection'
import { expect, test } from 'vitest'

import { CE_ROUTES } from '../src/index.ts'
import { event, openCe } from './ce-server.ts'

const JSON_EVENT = { 'content-type': 'application/cloudevents+json' }

test('CE-7 - parameters: unknown, repeated, missing, mistyped and out-of-range ones are named, with the allowed values', async () => {
  const { base, post, user } = await openCe()
  const cases: readonly [method: string, route: string, message: string][] = [
    ['POST', 'send/event?channel=c&chanel=d', 'chanel is unknown; it must be one of channel'],
    ['POST', 'send/event?channel=c&channel=d', 'channel is given more than once; it must be given once: a string'],
    ['POST', 'send/event?channel=%FF', '"%FF" is not percent-encoded UTF-8'],
    [
      'POST',
      'send/event?channel=50%',
      '"50%" is not percent-encoded UTF-8; it must be percent-encoded, with %25 for a percent sign',
    ],
    ['POST', 'send/event-store?delay_seconds=1', 'delay_seconds is unknown'],
    ['POST', 'queue/send?channel=c&delay_seconds=soon', 'delay_seconds is "soon"; it must be a whole number from 0 to'],
    ['POST', 'queue/send?channel=c&delay_seconds=-1', 'delay_seconds is "-1"; it must be a whole number from 0'],
    ['POST', 'queue/send?channel=c&delay_seconds=1.5', 'delay_seconds is "1.5"'],
    ['POST', 'queue/send?channel=c&delay_seconds=1e3', 'delay_seconds is "1e3"'],
    ['POST', 'queue/send?channel=c&delay_seconds=', 'delay_seconds is ""'],
    ['POST', 'queue/send?channel=c&expiration_seconds=9999999999999', 'expiration_seconds is "9999999999999"'],
    ['POST', 'queue/send?channel=c&max_receive_count=x', 'max_receive_count is "x"'],
    ['POST', 'send/command?channel=c&timeout=0', 'timeout is "0"; it must be a whole number from 1 to 3600'],
    ['POST', 'send/query?channel=c&timeout=3601', 'timeout is "3601"; it must be a whole number from 1 to 3600'],
    ['POST', 'send/response', 'request_id is missing; it must be a string of 1 to 128 characters'],
    ['POST', 'send/response?request_id=', 'request_id is ""'],
    ['POST', 'send/response?request_id=r&is_error=yes', 'is_error is "yes"; it must be true or false'],
    ['POST', 'queue/receive', 'channel is missing; it must be a string'],
    ['POST', 'queue/receive?channel=c&max_messages=0', 'max_messages is "0"; it must be a whole number from 1 to 1000'],
    ['POST', 'queue/receive?channel=c&max_messages=1001', 'max_messages is "1001"'],
    ['POST', 'queue/receive?channel=c&wait_timeout=61', 'wait_timeout is "61"; it must be a whole number from 0 to 60'],
    ['POST', 'queue/receive?channel=c&is_peek=1', 'is_peek is "1"; it must be true or false'],
    ['POST', 'queue/receive?channel=c&visibility_seconds=-5', 'visibility_seconds is "-5"'],
    [
      'POST',
      'queue/receive?channel=c&is_peek=true&visibility_seconds=5',
      'visibility_seconds is "5"; it must be left out',
    ],
    ['POST', 'queue/receive?channel=a..b', 'invalid channel name "a..b"'],
    ['POST', 'queue/ack', 'receipt is missing; it must be given 1 to 1000 times'],
    [
      'POST',
      'queue/nack?receipt=a&receipt=',
      'receipt is given 2 times; it must be given 1 to 1000 times, never empty',
    ],
    ['POST', 'queue/ack_all', 'channel is missing'],
    ['POST', 'queue/ack_all?channel=c&__proto__=1', '__proto__ is unknown'],
    ['GET', 'subscribe/events', 'channel is missing'],
    ['GET', 'subscribe/events?channel=a.>.b', 'invalid channel pattern "a.>.b"'],
    ['GET', 'subscribe/events?channel=', 'invalid channel pattern "": it is empty'],
    ['GET', 'subscribe/events?channel=_AGENTS_.>', 'reserved channel name'],
    ['GET', 'subscribe/commands?channel=_AGENTS_.agents/x', 'reserved channel name'],
    ['GET', 'subscribe/events?channel=c&group=', 'group is ""; it must be a string of 1 to 256 characters'],
    ['GET', `subscribe/events?channel=c&client_id=${'x'.repeat(257)}`, 'it must be a string of 1 to 256 characters'],
    ['GET', 'subscribe/events-store?channel=a.*', 'invalid channel name "a.*"'],
    ['GET', 'subscribe/commands?channel=>', 'invalid channel name ">"'],
    ['GET', 'subscribe/queries?channel=q&events_store_type=1', 'events_store_type is unknown'],
    [
      'GET',
      'subscribe/events-store?channel=c&events_store_type=7',
      'events_store_type is "7"; it must be a whole number from 1 to 6',
    ],
    [
      'GET',
      'subscribe/events-store?channel=c&events_store_type=4',
      'events_store_value is missing; it must be a sequence',
    ],
    ['GET', 'subscribe/events-store?channel=c&events_store_type=4&events_store_value=0', 'events_store_value is "0"'],
    [
      'GET',
      'subscribe/events-store?channel=c&events_store_type=4&events_store_value=007',
      'events_store_value is "007"',
    ],
    ['GET', 'subscribe/events-store?channel=c&events_store_type=5&events_store_value=yesterday', 'ISO 8601'],
    ['GET', 'subscribe/events-store?channel=c&events_store_type=5&events_store_value=2026-02-31T00:00:00Z', 'ISO 8601'],
    ['GET', 'subscribe/events-store?channel=c&events_store_type=5&events_store_value=2026-02-01T00:00', 'no time zone'],
    ['GET', 'subscribe/events-store?channel=c&events_store_type=6&events_store_value=-1', 'seconds back'],
    ['GET', 'subscribe/events-store?channel=c&events_store_value=4', 'events_store_value is "4"; it must be left out'],
  ]
  for (const [method, route, message] of cases) {
    const answer = await fetch(`${base}/ce/${route}`, {
      method,
      ...(method === 'POST' ? { headers: JSON_EVENT, body: JSON.stringify(event()) } : {}),
    })
    const text = answer.status === 200 ? 'it was accepted' : await answer.text()
    expect(answer.status, `${route}: ${text}`).toBe(400)
    expect(JSON.parse(text).is_error).toBe(true)
    expect(JSON.parse(text).message, route).toContain(message)
  }
  for (const id of ['', 'x', '-1', '1.5', '01', '9007199254740991', '1, 2']) {
    const answer = await fetch(`${base}/ce/subscribe/events-store?channel=c`, { headers: { 'last-event-id': id } })
    expect(answer.status, id).toBe(400)
    expect(await answer.json()).toMatchObject({ message: expect.stringContaining('Last-Event-ID') })
  }
  const problems = await post('queue/receive?max_messages=x&wait_timeout=99&foo=1', undefined)
  expect(problems.data).toEqual({
    code: 'PARAMETER_INVALID',
    problems: [
      { parameter: 'foo', given: 'unknown', allowed: expect.stringContaining('channel, max_messages') },
      { parameter: 'channel', allowed: 'a string' },
      { parameter: 'max_messages', given: '"x"', allowed: 'a whole number from 1 to 1000' },
      { parameter: 'wait_timeout', given: '"99"', allowed: 'a whole number from 0 to 60' },
    ],
  })
  expect(await user.channels.list()).toEqual([])
})

test('CE-8 - events: an invalid CloudEvent is 400, and the message has the reason', async () => {
  const { post, user } = await openCe()
  const cases: readonly [body: string | Uint8Array | object, message: string][] = [
    ['', 'the body is not JSON'],
    ['{', 'the body is not JSON'],
    [new Uint8Array([0x7b, 0xff, 0x7d]), 'the body is not UTF-8'],
    ['[]', 'an event must be a JSON object'],
    ['null', 'an event must be a JSON object'],
    [event({ id: undefined }), 'the attribute id is missing'],
    [event({ source: undefined }), 'the attribute source is missing'],
    [event({ type: '' }), 'the attribute type is missing or empty'],
    [event({ type: null }), 'the attribute type is missing'],
    [event({ specversion: undefined }), 'the attribute specversion is missing'],
    [event({ specversion: '0.3' }), 'specversion is "0.3"; this server reads "1.0"'],
    [event({ id: 7 }), 'the attribute id is a number; it must be a string'],
    [event({ source: 'not a uri' }), 'source is "not a uri"; it must be a URI or URI reference'],
    [event({ time: 'noon' }), 'time is "noon"; it must be an RFC 3339 timestamp'],
    [event({ dataschema: 'relative' }), 'dataschema is "relative"; it must be an absolute URI'],
    [event({ subject: '' }), 'subject is ""; it must be a string that is not empty'],
    [event({ datacontenttype: '' }), 'datacontenttype is ""'],
    [event({ MyExtension: 'x' }), '"MyExtension" is not an attribute name; allowed are the letters a to z and digits'],
    [event({ my_extension: 'x' }), '"my_extension" is not an attribute name'],
    [event({ ext: 1.5 }), 'the attribute ext is a number; it must be a string, a whole number, true or false'],
    [event({ ext: { a: 1 } }), 'the attribute ext is an object'],
    [event({ ext: [1] }), 'the attribute ext is an array'],
    [event({ ext: 'a\u0000b' }), 'the attribute ext contains a control character'],
    [event({ ext: 'a\nb' }), 'the attribute ext contains a control character'],
    ['{"specversion":"1.0","id":"1","id":"2","source":"/t","type":"t"}', 'the member "id" appears twice'],
    ['{"specversion":"1.0","id":"1","source":"/t","type":"t","ext":"\\ud800"}', 'the attribute ext contains'],
    [event({ data: 1, data_base64: 'AA==' }), 'it has both data and data_base64'],
    [event({ data_base64: '!!' }), 'data_base64 must be a string of base64'],
    [event({ data_base64: 'AAA' }), 'data_base64 must be a string of base64'],
    [event({ data_base64: 7 }), 'data_base64 must be a string of base64'],
    [
      event({ datacontenttype: 'text/plain', data: { a: 1 } }),
      'data is not a string, but datacontenttype is "text/plain"',
    ],
    [
      '{"specversion":"1.0","id":"1","source":"/t","type":"t","datacontenttype":"text/plain","data":"\\ud800"}',
      'data is not valid Unicode',
    ],
  ]
  for (const [body, message] of cases) {
    const answer = await post('queue/send?channel=c', body, JSON_EVENT)
    expect(answer.message, JSON.stringify(body)).toContain(message)
    expect(answer).toMatchObject({ status: 400, is_error: true, data: { code: 'EVENT_INVALID' } })
  }
  expect(await user.channels.list()).toEqual([])
})

test('CE-4 - binary mode: header values are unquoted and percent-decoded once; invalid UTF-8 is 400', async () => {
  const { post, subscribe } = await openCe()
  const stream = await subscribe('events?channel=c')
  const head = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/t', 'ce-type': 't' }
  const good: readonly [header: string, value: string][] = [
    ['Euro%20%E2%82%AC%20%F0%9F%98%80', 'Euro € 😀'],
    ['"quoted \\"text\\" and \\\\"', 'quoted "text" and \\'],
    ['"%41%2541"', 'A%41'],
    ['%e2%82%ac', '€'],
    ['plain text; with, all (of) it', 'plain text; with, all (of) it'],
    ['', ''],
  ]
  for (const [header, ext] of good) {
    expect(await post('send/event?channel=c', '', { ...head, 'ce-ext': header })).toMatchObject({ status: 202 })
    expect(await stream.nextJson(), header).toMatchObject({ ext })
  }
  const bad: readonly [headers: Record<string, string>, message: string][] = [
    [{ 'ce-ext': '%C0%A0' }, 'the header ce-ext is not UTF-8 once decoded'],
    [{ 'ce-ext': '%FF' }, 'the header ce-ext is not UTF-8 once decoded'],
    [{ 'ce-ext': '\u00e9' }, 'the header ce-ext is not UTF-8 once decoded'],
    [{ 'ce-ext': '50%' }, 'the header ce-ext has a % without two hexadecimal digits'],
    [{ 'ce-ext': '%zz' }, 'the header ce-ext has a %'],
    [{ 'ce-ext': '"open' }, 'begins with a quote and is not a quoted string'],
    [{ 'ce-ext': '%0A' }, 'the attribute ext contains a control character'],
    [{ 'ce-id': '' }, 'the attribute id is missing'],
    [{ 'ce-specversion': '0.3' }, 'specversion is "0.3"'],
    [{ 'ce-bad_name': 'x' }, '"bad_name" is not an attribute name'],
    [{ 'ce-data': 'x' }, '"data" is not an attribute name'],
    [{ 'ce-datacontenttype': 'text/plain' }, 'datacontenttype is the Content-Type header in binary mode'],
    [{ 'ce-source': '' }, 'the attribute source is missing'],
  ]
  for (const [headers, message] of bad) {
    const answer = await post('send/event?channel=c', '', { ...head, ...headers })
    expect(answer.message, JSON.stringify(headers)).toContain(message)
    expect(answer.status).toBe(400)
  }
})

test('CE-4 - binary mode: unencoded UTF-8 is read as such, and a header that is there twice is 400', async () => {
  const { base, subscribe } = await openCe()
  const stream = await subscribe('events?channel=c')
  const raw = async (lines: string): Promise<string> => {
    const connection = new RawConnection(base)
    await connection.write(
      `POST /ce/send/event?channel=c HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\nce-specversion: 1.0\r\nce-id: 1\r\nce-source: /t\r\nce-type: t\r\n${lines}\r\n\r\n`,
    )
    await connection.closed
    return connection.received
  }
  expect(await raw('ce-ext: grün')).toContain('HTTP/1.1 202')
  expect(await stream.nextJson()).toMatchObject({ ext: 'grün' })
  const twice = await raw('ce-ext: a\r\nCE-Ext: b')
  expect(twice).toContain('HTTP/1.1 400')
  expect(twice).toContain('the header ce-ext appears twice')
})

test('CE-8 - media types: neither a CloudEvents type nor ce-specversion is 415, as are other formats and encodings', async () => {
  const { post } = await openCe()
  const body = JSON.stringify(event({ subject: 'c' }))
  const head = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/t', 'ce-type': 't' }
  for (const headers of [
    { 'content-type': 'application/json' },
    { 'content-type': 'text/plain' },
    { 'content-type': 'nonsense' },
    { 'content-type': 'application/cloudevents' },
    { 'content-type': 'application/cloudevents+avro' },
    { 'content-type': 'application/cloudevents+json; charset=iso-8859-1' },
    { 'content-type': 'application/cloudevents+json', 'content-encoding': 'gzip' },
    { ...head, 'content-encoding': 'br' },
  ]) {
    expect(await post('send/event', body, headers), JSON.stringify(headers)).toMatchObject({
      status: 415,
      is_error: true,
      data: { code: 'MEDIA_TYPE_UNSUPPORTED' },
    })
  }
  for (const type of [
    'application/cloudevents+json; charset=utf-8',
    'Application/CloudEvents+JSON;charset="UTF-8"',
    'application/cloudevents+json ;profile=x',
  ]) {
    expect((await post('send/event', body, { 'content-type': type })).status, type).toBe(202)
  }
})

test('CE-8 - limits: a body over the limit is 413, declared or not', async () => {
  const { base, post } = await openCe({ maxBodyBytes: 1000 })
  const large = JSON.stringify(event({ subject: 'c', data: 'x'.repeat(1000) }))
  expect(await post('send/event', large, JSON_EVENT)).toMatchObject({
    status: 413,
    message: 'the body is larger than the limit of 1000 bytes',
    data: { code: 'BODY_TOO_LARGE', limit: 1000 },
  })
  const chunked = await fetch(`${base}/ce/send/event`, {
    method: 'POST',
    headers: JSON_EVENT,
    body: new Blob([large]).stream(),
    duplex: 'half',
  })
  expect(chunked.status).toBe(413)
})

test('CE-8 - routes: another method is 405 with Allow, another path 404 in plain text', async () => {
  const { base } = await openCe()
  for (const { name, method } of CE_ROUTES) {
    for (const other of ['GET', 'POST', 'PUT', 'DELETE', 'HEAD'].filter((verb) => verb !== method)) {
      const answer = await fetch(`${base}/ce/${name}?channel=c`, { method: other })
      expect(answer.status, `${other} ${name}`).toBe(405)
      expect(answer.headers.get('allow')).toBe(method)
      await answer.text()
    }
  }
  for (const path of ['/ce', '/ce/', '/ce/send', '/ce/send/events', '/ce/send/event/', '/CE/send/event']) {
    expect((await fetch(`${base}${path}`, { method: 'POST' })).status, path).toBe(404)
  }
})

import { Writable } from 'node:stream'
import pino from 'pino'
import { expect, test } from 'vitest'

import { LOG_FORM } from '../src/log.ts'

test('log - secrets are left out wherever headers or credentials are logged', () => {
  let text = ''
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString()
      done()
    },
  })
  const log = pino(LOG_FORM, sink)
  log.info({ req: { headers: { authorization: 'Bearer s3cret', cookie: 'id=s3cret', host: 'x' } } }, 'request')
  log.info({ token: 's3cret', config: { secret: 's3cret', password: 's3cret' } }, 'settings')
  expect(text).not.toContain('s3cret')
  const [first] = text.split('\n')
  expect(JSON.parse(first!)).toMatchObject({
    level: 'info',
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
    msg: 'request',
    req: { headers: { authorization: '[redacted]', cookie: '[redacted]', host: 'x' } },
  })
})

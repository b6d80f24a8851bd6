import { ANONYMOUS } from '@signalbox/broker-core'
import { expect, test } from 'vitest'

import { anonymousAuthenticator, AuthenticationError, authenticationFailed } from '../src/index.ts'

test('authentication - while it is off, every caller is anonymous, with or without a token', () => {
  expect(anonymousAuthenticator.authenticate({ headers: {}, rawHeaders: [] })).toBe(ANONYMOUS)
  expect(
    anonymousAuthenticator.authenticate({
      headers: { authorization: 'Bearer x' },
      rawHeaders: ['Authorization', 'Bearer x'],
    }),
  ).toBe(ANONYMOUS)
})

test('RPC-9 - a failed authentication is -32010 and says nothing of its reason', () => {
  expect(authenticationFailed('5')).toMatchObject({ code: -32010, message: 'Authentication failed', id: '5' })
  expect(new AuthenticationError('the key is unknown')).toBeInstanceOf(Error)
})

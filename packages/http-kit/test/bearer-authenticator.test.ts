import { createHmac } from 'node:crypto'

import type { JWTPayload } from 'jose'
import { SignJWT, UnsecuredJWT } from 'jose'
import { replaceFile, testFile } from '@signalbox/testkit/test-folder'
import { describe, expect, onTestFinished, test } from 'vitest'

import type { BearerAuthenticator, BearerAuthenticatorOptions, Identity } from '../src/index.ts'
import { AuthenticationError, bearerAuthenticator } from '../src/index.ts'
import { ecKey, keySet, pem, request, rsaKey, seconds, token } from './support/tokens.ts'

const KEY = ecKey('one')
const RSA = rsaKey('rsa')
const SECRET = 'thirty-two bytes are the least..'

function open(options: Partial<BearerAuthenticatorOptions> = {}): BearerAuthenticator {
  const authenticator = bearerAuthenticator({ keys: { keyFile: testFile(pem(KEY)), lookMs: 20 }, ...options })
  onTestFinished(() => authenticator[Symbol.dispose]())
  return authenticator
}

async function identity(authenticator: BearerAuthenticator, bearer: string): Promise<Identity> {
  return authenticator.authenticate(request(`Bearer ${bearer}`))
}

/** Why a request with these headers is refused; fails when it is not. */
async function refusal(authenticator: BearerAuthenticator, ...authorization: readonly string[]): Promise<string> {
  try {
    await authenticator.authenticate(request(...authorization))
  } catch (error) {
    if (error instanceof AuthenticationError) return error.message
    throw error
  }
  throw new Error('the caller was let in')
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

describe('the Authorization header', () => {
  test('S1 - one Bearer header is accepted, in any case of its scheme', async () => {
    const authenticator = open()
    const bearer = await token(KEY)
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer ']) {
      expect(await authenticator.authenticate(request(`${scheme} ${bearer}`))).toMatchObject({ clientId: 'alice' })
    }
  })

  test('S1 - no caller is admitted without a header, with two, or with another scheme', async () => {
    const authenticator = open()
    const bearer = await token(KEY)
    expect(await refusal(authenticator)).toBe('the request has no Authorization header')
    expect(await refusal(authenticator, `Bearer ${bearer}`, `Bearer ${bearer}`)).toMatch(/several/)
    expect(await refusal(authenticator, `Bearer ${bearer}`, 'Basic x')).toMatch(/several/)
    for (const other of [
      '',
      'Bearer',
      'Bearer ',
      `Basic ${bearer}`,
      bearer,
      `Bearer ${bearer} x`,
      `Bearer ${bearer}, Bearer ${bearer}`,
      `Bearer\t${bearer}`,
      `Token ${bearer}`,
    ]) {
      expect(await refusal(authenticator, other), other).toMatch(/not of the form Bearer TOKEN/)
    }
    expect(await refusal(authenticator, `Bearer ${'x'.repeat(1_048_576)}`)).toMatch(/longer than 8192 characters/)
  })
})

describe('the token', () => {
  test.each(['x', 'a.b', 'a.b.c', '..', 'a.b.c.d', 'a.b.c.d.e', 'é.ü.x', `${encode({})}.${encode({})}.`, '\u0000'])(
    'S1 - garbage such as %j is refused',
    async (garbage) => {
      expect(await refusal(open(), `Bearer ${garbage}`)).not.toBe('')
    },
  )

  test('S1 - a token that was changed is refused', async () => {
    const authenticator = open()
    const [header = '', , signature = ''] = (await token(KEY)).split('.')
    const forged = `${header}.${encode({ ClientID: 'root', exp: seconds(60) })}.${signature}`
    expect(await refusal(authenticator, `Bearer ${forged}`)).toMatch(/signature/)
  })

  test('S1 - alg none is never accepted', async () => {
    const claims = { ClientID: 'alice', exp: seconds(60) }
    const unsecured = new UnsecuredJWT(claims).encode()
    const sources: readonly BearerAuthenticatorOptions['keys'][] = [
      { keyFile: testFile(pem(KEY)) },
      { jwksFile: testFile(keySet(KEY)) },
      { secret: SECRET },
    ]
    for (const keys of sources) {
      const authenticator = open({ keys })
      for (const alg of ['none', 'None', 'NONE', '']) {
        expect(await refusal(authenticator, `Bearer ${encode({ alg })}.${encode(claims)}.`)).not.toBe('')
      }
      expect(await refusal(authenticator, `Bearer ${unsecured}`)).not.toBe('')
    }
  })

  test('S1 - HS256 signed with the text of the public key is refused', async () => {
    for (const key of [KEY, RSA]) {
      const body = `${encode({ alg: 'HS256', kid: key.kid })}.${encode({ ClientID: 'root', exp: seconds(60) })}`
      const sources: readonly [BearerAuthenticatorOptions['keys'], string][] = [
        [{ keyFile: testFile(pem(key)) }, pem(key)],
        [{ jwksFile: testFile(keySet(key)) }, keySet(key)],
      ]
      for (const [keys, text] of sources) {
        const forged = `${body}.${createHmac('sha256', text).update(body).digest('base64url')}`
        expect(await refusal(open({ keys }), `Bearer ${forged}`)).toMatch(/\(alg\)/)
      }
    }
  })

  test('S1 - only the listed algorithms count, also if the key could verify others', async () => {
    const strict = open({ keys: { keyFile: testFile(pem(RSA)) }, algorithms: ['PS256'] })
    expect(await refusal(strict, `Bearer ${await token(RSA)}`)).toMatch(/\(alg\)/)
    const { clientId } = await identity(strict, await token({ ...RSA, alg: 'PS256' }))
    expect(clientId).toBe('alice')
  })

  test('S1 - exp, nbf and iat are times: a token without an end is refused', async () => {
    const authenticator = open({ keys: { secret: SECRET } })
    const signed = (claims: string): string => {
      const text = `${encode({ alg: 'HS256' })}.${Buffer.from(claims).toString('base64url')}`
      return `Bearer ${text}.${createHmac('sha256', SECRET).update(text).digest('base64url')}`
    }
    const exp = `"exp":${seconds(60)}`
    await expect(authenticator.authenticate(request(signed(`{"sub":"a",${exp}}`)))).resolves.toBeDefined()
    for (const claim of [
      '"exp":1e400',
      '"exp":1e300',
      '"exp":9007199254740991',
      `${exp},"nbf":-1e400`,
      `${exp},"iat":1e400`,
    ]) {
      expect(await refusal(authenticator, signed(`{"sub":"a",${claim}}`)), claim).toMatch(/is not a time in seconds/)
    }
  })

  test('S1 - exp is required, and both it and nbf have 5 seconds of leeway', async () => {
    const authenticator = open()
    const of = (claims: JWTPayload) => token(KEY, claims)
    expect(await refusal(authenticator, `Bearer ${await of({ exp: seconds(-7) })}`)).toMatch(/\(exp\)/)
    expect(await identity(authenticator, await of({ exp: seconds(-2) }))).toMatchObject({ clientId: 'alice' })
    expect(await refusal(authenticator, `Bearer ${await of({ nbf: seconds(10) })}`)).toMatch(/\(nbf\)/)
    expect(await identity(authenticator, await of({ nbf: seconds(2) }))).toMatchObject({ clientId: 'alice' })
    const unlimited = await new SignJWT({ ClientID: 'alice' }).setProtectedHeader({ alg: 'ES256' }).sign(KEY.privateKey)
    expect(await refusal(authenticator, `Bearer ${unlimited}`)).toMatch(/\(exp\)/)
    const text = await new SignJWT({ ClientID: 'alice', exp: '9999999999' as unknown as number })
      .setProtectedHeader({ alg: 'ES256' })
      .sign(KEY.privateKey)
    expect(await refusal(authenticator, `Bearer ${text}`)).toMatch(/\(exp\)/)
  })

  test('S1 - issuer and audience are checked where they are set', async () => {
    const authenticator = open({ issuer: 'https://id.example', audience: ['broker', 'other'] })
    const good = { iss: 'https://id.example', aud: 'broker' }
    expect(await identity(authenticator, await token(KEY, good))).toMatchObject({ clientId: 'alice' })
    expect(await identity(authenticator, await token(KEY, { ...good, aud: ['x', 'other'] }))).toMatchObject({})
    for (const bad of [{ iss: 'https://evil.example' }, { iss: 'https://id.example/' }, { aud: 'x' }, { aud: [] }]) {
      expect(await refusal(authenticator, `Bearer ${await token(KEY, { ...good, ...bad })}`)).toMatch(/\((iss|aud)\)/)
    }
    expect(await refusal(authenticator, `Bearer ${await token(KEY)}`)).toMatch(/\((iss|aud)\)/)
  })

  test('S1 - a crit header that is not understood is refused', async () => {
    const head = encode({ alg: 'HS256', crit: ['exp2'], exp2: 1 })
    const body = `${head}.${encode({ ClientID: 'alice', exp: seconds(60) })}`
    const signed = `${body}.${createHmac('sha256', SECRET).update(body).digest('base64url')}`
    expect(await refusal(open({ keys: { secret: SECRET } }), `Bearer ${signed}`)).toContain('(alg, crit)')
  })
})

describe('the caller', () => {
  test('S2 - ClientID names the caller, else client_id, else sub', async () => {
    const authenticator = open()
    const named = async (claims: JWTPayload) =>
      (await identity(authenticator, await token(KEY, { ClientID: undefined, ...claims }))).clientId
    expect(await named({ ClientID: 'a', client_id: 'b', sub: 'c' })).toBe('a')
    expect(await named({ client_id: 'b', sub: 'c' })).toBe('b')
    expect(await named({ sub: 'c' })).toBe('c')
    expect(await named({ sub: '~'.repeat(256) })).toBe('~'.repeat(256))
  })

  test.each([
    [{ ClientID: undefined }, /must have one of the claims ClientID, client_id, sub/],
    [{ ClientID: '', sub: 'c' }, /ClientID is not 1 to 256/],
    [{ ClientID: 'x'.repeat(4096) }, /ClientID is not/],
    [{ ClientID: 'x'.repeat(257) }, /ClientID is not/],
    [{ ClientID: 'a\r\nX-Broker-Caller-ID: root' }, /ClientID is not/],
    [{ ClientID: 'a b' }, /ClientID is not/],
    [{ ClientID: 'größe' }, /ClientID is not/],
    [{ ClientID: 7, sub: 'c' }, /ClientID is not/],
    [{ ClientID: null, sub: 'c' }, /ClientID is not/],
    [{ ClientID: ['a'] }, /ClientID is not/],
    [{ ClientID: undefined, sub: { a: 1 } as unknown as string }, /sub is not|"sub"/],
  ])('S2 - claims %j name nobody', async (claims, reason) => {
    expect(await refusal(open(), `Bearer ${await token(KEY, claims)}`)).toMatch(reason)
  })

  test('S2, S3 - roles come as an array or between blanks; unknown ones give nothing', async () => {
    const authenticator = open()
    const rolesOf = async (roles: unknown) => (await identity(authenticator, await token(KEY, { roles }))).roles
    expect(await rolesOf(['Admin'])).toEqual(['Admin'])
    expect(await rolesOf('ReadOnly ReadWrite')).toEqual(['ReadOnly', 'ReadWrite'])
    expect(await rolesOf(['Owner', 'ReadOnly', 7, null])).toEqual(['ReadOnly'])
    for (const none of [undefined, [], '', 'admin', 'Admin,ReadOnly', 7, { Admin: true }, ['toString']]) {
      expect(await rolesOf(none)).toBeUndefined()
    }
  })

  test('S2 - the identity says when its token ends', async () => {
    const exp = seconds(60)
    expect(await identity(open(), await token(KEY, { exp }))).toEqual({ clientId: 'alice', expiresAt: exp * 1000 })
  })
})

/** A token of alice, signed with a shared secret. */
function signedBy(secret: string): Promise<string> {
  const token = new SignJWT({ ClientID: 'alice', exp: seconds(60) }).setProtectedHeader({ alg: 'HS256' })
  return token.sign(Buffer.from(secret))
}

describe('keys', () => {
  test('S1 - each source verifies with its own default algorithm', async () => {
    const hs = (alg: string) =>
      new SignJWT({ ClientID: 'alice', exp: seconds(60) }).setProtectedHeader({ alg }).sign(Buffer.from(SECRET))
    expect(await identity(open({ keys: { secret: SECRET } }), await hs('HS256'))).toMatchObject({ clientId: 'alice' })
    for (const key of [KEY, RSA]) {
      expect(await identity(open({ keys: { keyFile: testFile(pem(key)) } }), await token(key))).toMatchObject({})
      expect(await identity(open({ keys: { jwksFile: testFile(keySet(KEY, RSA)) } }), await token(key))).toMatchObject(
        {},
      )
    }
  })

  test('S1 - a token without a key id is tried with the keys that could be meant', async () => {
    const others = [ecKey('two'), ecKey('three')]
    const authenticator = open({ keys: { jwksFile: testFile(keySet(...others, KEY)) } })
    const bearer = await token(KEY, {}, { kid: undefined })
    expect(await identity(authenticator, bearer)).toMatchObject({ clientId: 'alice' })
    const foreign = await token(ecKey('x'), {}, { kid: undefined })
    expect(await refusal(authenticator, `Bearer ${foreign}`)).toMatch(/signature/)
    expect(await refusal(authenticator, `Bearer ${await token(ecKey('unknown'))}`)).toMatch(/key/)
  })

  test('S1 - unusable keys are refused at once, with the allowed ones', () => {
    const privatePem = KEY.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    const wrong: readonly [BearerAuthenticatorOptions['keys'], readonly string[], RegExp][] = [
      [{ keyFile: '/nowhere/key.pem' }, [], /^keyFile: cannot read "\/nowhere\/key.pem" \(ENOENT\)/],
      [{ keyFile: testFile('garbage') }, [], /^keyFile: .*no public key in PEM/],
      [{ keyFile: testFile(privatePem) }, [], /^keyFile: .*private key; allowed is the public key/],
      [{ keyFile: testFile(pem(rsaKey('small', 1024))) }, [], /^keyFile: .*1024 bits; allowed are 2048/],
      [{ keyFile: testFile(pem(KEY)) }, ['RS256'], /"RS256" cannot be used with the P-256 key; allowed are ES256/],
      [{ keyFile: testFile(pem(KEY)) }, ['none'], /"none" cannot be used with/],
      [{ jwksFile: testFile('{') }, [], /^jwksFile: .*not JSON/],
      [{ jwksFile: testFile('{"keys": 7}') }, [], /^jwksFile: .*not a JSON Web Key Set/],
      [{ jwksFile: testFile('{"keys": [{}]}') }, [], /^jwksFile: .*not a JSON Web Key Set/],
      [{ jwksFile: testFile(keySet(KEY)) }, ['HS256'], /^algorithms: "HS256" cannot be used with a key set/],
      [{ jwksUrl: 'ftp://id.example/jwks' }, [], /^jwksUrl: .*allowed is an http or https URL/],
      [{ jwksUrl: 'https://user:pw@id.example/jwks' }, [], /^jwksUrl: .*without credentials/],
      [{ secret: SECRET.slice(1) }, [], /^secret: it has 31 bytes; allowed are 32 or more/],
      [{ secret: SECRET }, ['HS512'], /^secret: it has 32 bytes; allowed are 64 or more/],
      [{ secret: SECRET }, ['ES256'], /^algorithms: "ES256" cannot be used with a secret/],
      [Object.assign({ secret: SECRET }, { keyFile: 'x' }), [], /^keys: allowed is exactly one of/],
    ]
    for (const [keys, algorithms, message] of wrong) {
      expect(() => bearerAuthenticator({ keys, algorithms })).toThrow(message)
    }
  })

  test('S1 - the refusal of a secret does not contain the secret', () => {
    expect(() => bearerAuthenticator({ keys: { secret: 'hunter2' } })).toThrow(/^(?!.*hunter2)/)
    expect(() => bearerAuthenticator({ keys: { secretFile: testFile('hunter2') } })).toThrow(
      /^secretFile: (?!.*hunter2)/,
    )
  })

  test('S1 - a secret may be in a file, whose last newline is no part of it', async () => {
    const bearer = await signedBy(SECRET)
    for (const end of ['', '\n', '\r\n']) {
      const authenticator = open({ keys: { secretFile: testFile(`${SECRET}${end}`) } })
      expect(await identity(authenticator, bearer)).toMatchObject({ clientId: 'alice' })
    }
    const other = open({ keys: { secretFile: testFile(`${SECRET}\n\n`) } })
    expect(await identity(other, await signedBy(`${SECRET}\n`))).toMatchObject({ clientId: 'alice' })
    expect(() => bearerAuthenticator({ keys: { secretFile: testFile('\n') } })).toThrow(/^secretFile: .*it is empty/)
  })

  test('S1 - a changed secret file is read again, and tokens of the old secret no longer count', async () => {
    const path = testFile(SECRET)
    const changed = Promise.withResolvers<void>()
    const authenticator = open({ keys: { secretFile: path, lookMs: 20 }, hooks: { changed: () => changed.resolve() } })
    const [old, next] = [await signedBy(SECRET), await signedBy(`${SECRET}!`)]
    expect(await identity(authenticator, old)).toMatchObject({ clientId: 'alice' })
    replaceFile(path, `${SECRET}!\n`)
    await changed.promise
    expect(await identity(authenticator, next)).toMatchObject({ clientId: 'alice' })
    expect(await refusal(authenticator, `Bearer ${old}`)).not.toBe('')
  })

  test('S1 - a changed key file is read again, and tokens verified with the old key no longer count', async () => {
    const path = testFile(pem(KEY))
    const events: string[] = []
    const authenticator = open({
      keys: { keyFile: path, lookMs: 20 },
      hooks: { changed: () => void events.push('changed'), failed: (reason) => void events.push(reason) },
    })
    const old = await token(KEY)
    expect(await identity(authenticator, old)).toMatchObject({ clientId: 'alice' })
    replaceFile(path, 'garbage')
    await expect.poll(() => events).toEqual([expect.stringContaining('no public key in PEM')])
    expect(await identity(authenticator, old)).toMatchObject({ clientId: 'alice' })
    const next = rsaKey('two')
    replaceFile(path, pem(next))
    await expect.poll(() => events.at(-1)).toBe('changed')
    expect(await identity(authenticator, await token(next))).toMatchObject({ clientId: 'alice' })
    expect(await refusal(authenticator, `Bearer ${old}`)).not.toBe('')
  })
})

describe('verified tokens', () => {
  test('S1 - a token that was verified is answered for at once', async () => {
    const authenticator = open()
    const call = request(`Bearer ${await token(KEY)}`)
    const first = authenticator.authenticate(call)
    expect(first).toBeInstanceOf(Promise)
    expect(authenticator.authenticate(call)).toBe(first)
    const verified = await first
    expect(authenticator.authenticate(call)).toBe(verified)
  })

  test('S1 - it is forgotten when it expires', async () => {
    const authenticator = open()
    const call = request(`Bearer ${await token(KEY, { exp: seconds(-1) })}`)
    await authenticator.authenticate(call)
    // Within the leeway it is verified anew each time.
    expect(authenticator.authenticate(call)).toBeInstanceOf(Promise)
  })

  test('S1 - the number of remembered tokens is limited', async () => {
    const authenticator = open({ maxCachedTokens: 2 })
    const calls = await Promise.all(['a', 'b', 'c'].map(async (sub) => request(`Bearer ${await token(KEY, { sub })}`)))
    for (const call of calls) await authenticator.authenticate(call)
    expect(calls.map((call) => authenticator.authenticate(call) instanceof Promise)).toEqual([true, false, false])
  })

  test('S1 - a refused token is not remembered as a good one', async () => {
    const authenticator = open()
    const bad = await token(ecKey('other'))
    for (let i = 0; i < 3; i++) expect(await refusal(authenticator, `Bearer ${bad}`)).toMatch(/signature/)
  })

  test('S1 - on one connection each request counts by its own header', async () => {
    const authenticator = open()
    const socket = {}
    const on = (...authorization: readonly string[]) => ({ ...request(...authorization), socket })
    const bearers = await Promise.all(['alice', 'bob'].map((ClientID) => token(KEY, { ClientID })))
    for (const bearer of bearers) await authenticator.authenticate(on(`Bearer ${bearer}`))
    const names = [0, 0, 1, 0, 1, 1].map((i) => authenticator.authenticate(on(`Bearer ${bearers[i]}`)))
    expect(names.map((one) => 'clientId' in one && one.clientId)).toEqual([
      'alice',
      'alice',
      'bob',
      'alice',
      'bob',
      'bob',
    ])
    const [bearer = ''] = bearers
    for (const authorization of [
      [],
      [`Bearer ${bearer}`, `Bearer ${bearer}`],
      [bearer],
      [`Bearer ${bearer.slice(0, -4)}AAAA`],
    ]) {
      await expect((async () => authenticator.authenticate(on(...authorization)))()).rejects.toThrow(
        AuthenticationError,
      )
    }
    expect(authenticator.authenticate(on(`Bearer ${bearer}`))).toMatchObject({ clientId: 'alice' })
  })

  test('S1 - a connection on which a token was accepted does not outlive it, or the keys', async () => {
    const key = testFile(pem(KEY))
    const authenticator = open({ keys: { keyFile: key, lookMs: 20 } })
    const call = { ...request(`Bearer ${await token(KEY)}`), socket: {} }
    const short = { ...request(`Bearer ${await token(KEY, { exp: seconds(-1) })}`), socket: {} }
    for (const one of [call, short, call, short])
      expect(await authenticator.authenticate(one)).toMatchObject({ clientId: 'alice' })
    // Past its `exp` a token is verified for each request, within the leeway of the clocks.
    expect(authenticator.authenticate(short)).toBeInstanceOf(Promise)
    expect(authenticator.authenticate(call)).not.toBeInstanceOf(Promise)
    replaceFile(key, pem(ecKey('other')))
    await expect
      .poll(async () => refusal(authenticator, call.headers.authorization ?? ''), { timeout: 10_000 })
      .toMatch(/signature/)
    await expect((async () => authenticator.authenticate(call))()).rejects.toThrow(/signature/)
  })
})

import { createHmac } from 'node:crypto'

/** The key source of servers that require a token. */
export const SECRET = 'a secret that is shared with the tests only'

function part(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** Returns a token for a client or an operator with these roles. The server accepts it for 5 s after its end. */
export function tokenOf(
  secret: string,
  roles: readonly string[] = ['Admin'],
  seconds = 600,
  subject = 'operator',
): string {
  const now = Math.floor(Date.now() / 1000)
  const text = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ sub: subject, roles, iat: now, exp: now + seconds })}`
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`
}

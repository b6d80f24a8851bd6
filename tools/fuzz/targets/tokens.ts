import { bearerAuthenticator } from '@signalbox/http-kit'
import type { Identity } from '@signalbox/http-kit'

const authenticator = bearerAuthenticator({ keys: { secret: 'a secret of more than thirty-two bytes' } })

/** Verifies an Authorization header as a server with a shared secret does. @throws AuthenticationError */
export async function verifyToken(authorization: string): Promise<Identity> {
  return authenticator.authenticate({ headers: { authorization }, rawHeaders: ['Authorization', authorization] })
}

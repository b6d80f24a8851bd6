import type { ReloadFailure, SecurityStatus } from '@signalbox/management-api'

import type { Config } from '../config/schema.ts'
import { keySourceOf } from '../config/security.ts'
import type { NotifySecurity } from './events.ts'

/** The state of a part that is read again while the server runs. */
interface Reloaded {
  since: number
  failure: ReloadFailure | undefined
}

/** Follows the security events of the server, to report the keys and the policy in force. */
export class SecurityState {
  readonly #config: Config
  readonly #keys: Reloaded = { since: Date.now(), failure: undefined }
  readonly #policy: Reloaded = { since: Date.now(), failure: undefined }

  constructor(config: Config) {
    this.#config = config
  }

  readonly notify: NotifySecurity = (event) => {
    const now = Date.now()
    if (event.kind === 'keys.reloaded') replaced(this.#keys, now)
    else if (event.kind === 'keys.failed') this.#keys.failure = { at: now, reason: event.reason }
    else if (event.kind === 'policy.reloaded') replaced(this.#policy, now)
    else if (event.kind === 'policy.refused') this.#policy.failure = { at: now, reason: event.problems.join('; ') }
  }

  status(): SecurityStatus {
    const { authentication, api, authorization, security } = this.#config
    const { algorithms, issuer, audience, oauth } = authentication
    const isOn = authentication.enable || api.authentication.enable
    const keySource = isOn ? keySourceOf(authentication) : undefined
    return {
      authentication: {
        shared: authentication.enable,
        management: api.authentication.enable,
        keySource: keySource && `authentication.${keySource}`,
        algorithms,
        issuer,
        audience,
        oauth: oauth.enable,
        ...this.#keys,
      },
      ...(authorization.enable ? { policy: { file: authorization.policyFile, ...this.#policy } } : {}),
      tls: { shared: tlsOf(security), management: tlsOf(api.security) },
    }
  }
}

function replaced(part: Reloaded, now: number): void {
  part.since = now
  part.failure = undefined
}

function tlsOf({ certFile, caFile }: { readonly certFile: string; readonly caFile: string }) {
  return { enabled: certFile !== '', mutual: certFile !== '' && caFile !== '' }
}

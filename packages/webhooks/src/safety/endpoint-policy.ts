import type { ResolveHost } from '@signalbox/http-kit'
import type { ListeningAddress } from '@signalbox/http-kit/internal'
import { resolveBySystem } from '@signalbox/http-kit/internal'
import { AddressList, AddressPolicy } from '@signalbox/http-kit/internal'

import { WebhookError } from '../errors.ts'

export interface EndpointPolicyOptions {
  /**
   * Addresses, CIDR blocks, hosts, and patterns such as `*.example.com` that may be called in addition to public
   * addresses; also by plain http. Addresses of the local link and of cloud metadata stay refused. @default []
   */
  readonly allow?: readonly string[]
  /** Returns the addresses on which the server itself listens; they are never called. @default none */
  readonly ownAddresses?: () => readonly ListeningAddress[]
  /** Resolves a name to all its addresses. @default the name servers of the system, by `resolveBySystem` */
  readonly resolve?: ResolveHost
}

/** The longest URL of an endpoint, in characters. */
const MAX_URL = 2_048

/** One text for every refused address, so that callers cannot explore the network of the server. */
const REFUSED =
  'the endpoint may not be called; its host must have public addresses, or WEBHOOKS_ALLOW must list it; plain http needs WEBHOOKS_ALLOW'

/** The policy for the addresses of endpoints. All addresses of a name must be permitted when it is registered. */
export class EndpointPolicy extends AddressPolicy {
  /** @throws RangeError for an entry of the list that is neither an address nor a host */
  constructor({ allow = [], ownAddresses = () => [], resolve = resolveBySystem }: EndpointPolicyOptions = {}) {
    super({
      allow: new AddressList('WEBHOOKS_ALLOW', allow),
      deny: new AddressList('none', []),
      unlisted: 'public by https',
      strict: true,
      ownAddresses,
      resolve,
      refusal: () => refused('the endpoint may not be called: its host has no permitted address now'),
    })
  }

  /**
   * Checks the URL of an endpoint, and the addresses of its host.
   * @param account The account that the lookup counts against
   * @throws WebhookError ENDPOINT_REFUSED
   */
  async check(text: string, account?: string): Promise<URL> {
    const url = text.length <= MAX_URL && URL.canParse(text) ? new URL(text) : undefined
    if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:')) {
      throw refused(`the URL of the endpoint must be an https URL of at most ${MAX_URL} characters`)
    }
    if (url.username !== '' || url.password !== '')
      throw refused('the URL of the endpoint must not contain credentials')
    if (url.hash !== '') throw refused('the URL of the endpoint must not contain a fragment')
    if (!(await this.permits(url, account))) throw refused(REFUSED)
    return url
  }
}

function refused(problem: string): WebhookError {
  return new WebhookError('ENDPOINT_REFUSED', problem)
}

import type { ResolveHost } from '@signalbox/http-kit'
import type { ListeningAddress } from '@signalbox/http-kit/internal'
import { resolveBySystem } from '@signalbox/http-kit/internal'
import { AddressList, AddressPolicy } from '@signalbox/http-kit/internal'

export interface AgentAddressOptions {
  /**
   * The only allowed addresses: addresses, CIDR blocks, hosts, and patterns such as `*.example.com`.
   * @default [], which allows all
   */
  readonly allow?: readonly string[]
  /** Refused addresses, even if `allow` lists them; in the same form as `allow`. @default [] */
  readonly deny?: readonly string[]
  /**
   * Returns the addresses on which the server itself listens; agents are never called there. Called for each
   * check. @default none
   */
  readonly ownAddresses?: () => readonly ListeningAddress[]
  /** Resolves names. @default the name servers of the system, by `resolveBySystem` */
  readonly resolve?: ResolveHost
}

/** The error for an agent whose address may not be called. */
export class AgentAddressError extends Error {
  override readonly name = 'AgentAddressError'
  readonly code = 'AGENT_ADDRESS_REFUSED'

  constructor() {
    super('the address of the agent may not be called')
  }
}

/**
 * The policy for the addresses of agents. A name without an address passes the check at the registration: agents are
 * often registered before their names are known, and every call is checked again.
 */
export class AgentAddressPolicy extends AddressPolicy {
  readonly #allowedText: string

  /** @throws RangeError for an entry of a list that is neither an address nor a host */
  constructor(options: AgentAddressOptions = {}) {
    const allow = new AddressList('agent url allow list', options.allow ?? [])
    const deny = new AddressList('agent url deny list', options.deny ?? [])
    super({
      allow,
      deny,
      unlisted: allow.empty ? 'all' : 'none',
      strict: false,
      ownAddresses: options.ownAddresses ?? (() => []),
      resolve: options.resolve ?? resolveBySystem,
      refusal: () => new AgentAddressError(),
    })
    this.#allowedText = allowedText(!deny.empty, !allow.empty)
  }

  /**
   * Checks the host of a url and the addresses that it resolves to now.
   * @param account The account that the lookup counts against
   * @returns a general description of the allowed urls when the url is refused; otherwise undefined
   */
  async check(url: URL, account?: string): Promise<string | undefined> {
    return (await this.permits(url, account)) ? undefined : this.#allowedText
  }
}

/** The text for callers. It is the same for every refusal, so that callers cannot explore the broker's network. */
function allowedText(deny: boolean, allow: boolean): string {
  const rules = [
    'not link-local (cloud metadata)',
    'not a listener of the broker itself',
    ...(deny ? ['not in CONNECTORSA2_A_AGENT_URL_DENY'] : []),
    ...(allow ? ['in CONNECTORSA2_A_AGENT_URL_ALLOW'] : []),
  ]
  return `a URL whose address the broker may call: ${rules.join(', ')}`
}

/** Absolute, with both slashes: URL would repair `http:example.com`, and remove blanks and line ends. */
const ABSOLUTE = /^https?:\/\/[^\s/?#\\]/i
// oxlint-disable-next-line no-control-regex -- control characters are what this looks for
const BLANK_OR_CONTROL = /[\u0000-\u0020\u007f]/

/**
 * Parses an agent's url. Returns undefined unless it is an absolute http or https URL without credentials,
 * white space and control characters.
 */
export function agentUrl(text: string): URL | undefined {
  if (!ABSOLUTE.test(text) || BLANK_OR_CONTROL.test(text)) return undefined
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return undefined
  return url
}

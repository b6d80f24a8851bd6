import { compileLater, isJsonObject } from '@signalbox/http-kit/internal'
import type { Static } from 'typebox'
import { Type } from 'typebox'

import { agentUrl } from '../agent-addresses.ts'

/** A header value without blanks at its ends. */
const VALUE = '^[!-~]$|^[!-~][ -~]*[!-~]$'
const MAX_CHARACTERS = 8_192

const secret = () => Type.String({ minLength: 1, maxLength: MAX_CHARACTERS, pattern: VALUE })

const BearerSchema = Type.Object({ bearer: secret() }, { additionalProperties: false })

const ApiKeySchema = Type.Object(
  {
    api_key: Type.Object(
      { header: Type.String({ maxLength: 128, pattern: '^[A-Za-z0-9-]+$' }), value: secret() },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

const OAuthSchema = Type.Object(
  {
    oauth: Type.Object(
      {
        token_url: Type.String({ maxLength: 2_048 }),
        client_id: secret(),
        client_secret: secret(),
        scope: Type.Optional(secret()),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
)

/** The credentials with which the gateway calls an agent. */
const AgentCredentialsSchema = Type.Union([BearerSchema, ApiKeySchema, OAuthSchema])

export type AgentCredentials = Readonly<Static<typeof AgentCredentialsSchema>>

export type OAuthCredentials = Readonly<Static<typeof OAuthSchema>>['oauth']

/** The kinds of credentials that the gateway keeps, and `caller`: each caller sends its own. */
const CREDENTIAL_KINDS = ['caller', 'bearer', 'api_key', 'oauth'] as const

export type CredentialKind = (typeof CREDENTIAL_KINDS)[number]

/** The allowed credentials, for error texts. */
export const CREDENTIALS_FORM =
  '"caller", {"bearer": token}, {"api_key": {"header", "value"}} or {"oauth": {"token_url", "client_id", "client_secret", "scope"?}}'

const schema = compileLater(AgentCredentialsSchema)

/** Headers that an API key cannot have: they frame the request, or belong to the broker. */
const TAKEN =
  /^(?:accept|accept-encoding|connection|content-encoding|content-length|content-type|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade|a2a-version|x-broker-.*)$/i

/** Returns true for a kind of credentials, as a card shows it. */
export function isCredentialKind(value: unknown): value is CredentialKind {
  return CREDENTIAL_KINDS.some((kind) => kind === value)
}

/** Returns true for credentials that the gateway can use. */
export function isAgentCredentials(value: unknown): value is AgentCredentials {
  if (!schema.Check(value)) return false
  if ('api_key' in value) return !TAKEN.test(value.api_key.header)
  return !('oauth' in value) || agentUrl(value.oauth.token_url) !== undefined
}

export function kindOf(credentials: AgentCredentials): CredentialKind {
  if ('bearer' in credentials) return 'bearer'
  return 'api_key' in credentials ? 'api_key' : 'oauth'
}

/**
 * Takes the secrets out of a card: `a2a.credentials` becomes their kind. Leaves credentials that are not valid in the
 * card, whose check refuses them.
 */
export function takeCredentials(card: unknown): {
  readonly card: unknown
  readonly credentials: AgentCredentials | undefined
} {
  const options = isJsonObject(card) ? card['a2a'] : undefined
  const credentials = isJsonObject(options) ? options['credentials'] : undefined
  if (!isJsonObject(card) || !isJsonObject(options) || !isAgentCredentials(credentials)) {
    return { card, credentials: undefined }
  }
  return { card: { ...card, a2a: { ...options, credentials: kindOf(credentials) } }, credentials }
}

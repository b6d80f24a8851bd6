import type { OutgoingHttpHeaders } from 'node:http'

import type { HttpRequest, HttpResponse } from '@signalbox/http-kit'
import type { BaseUrl } from '@signalbox/http-kit/internal'
import { answerDocument, baseUrlOf, etagOf, forEveryOrigin, readPublicUrl } from '@signalbox/http-kit/internal'

import type { ServerInfo } from './wire/revision.ts'
import { SUPPORTED_VERSIONS } from './wire/revisions.ts'

/** The server card, which programs read before they connect. */
export interface McpCardOptions {
  /** The name of the server: a reversed domain, a slash and a name, such as `com.example/broker`. */
  readonly name: string
  /** One sentence about the server, of at most 100 characters. */
  readonly description: string
  /** The URL of the host for clients, without the path of the endpoint. @default the host of each request */
  readonly publicUrl?: string
}

/** The endpoint that a card describes. */
interface CardSubject {
  /** The path of the endpoint. */
  readonly path: string
  readonly serverInfo: ServerInfo
  /** `true` if callers send a bearer token that they have from elsewhere. */
  readonly token: boolean
}

export const CATALOG_PATH = '/.well-known/ai-catalog.json'

const CARD_TYPE = 'application/mcp-server-card+json'
const CARD_SCHEMA = 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json'

const NAME = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/
const MAX_DESCRIPTION = 100

/** The time that a client may cache the documents, in seconds. */
const MAX_AGE_SECONDS = 3_600

/** The header that a client asks its user for. */
const AUTHORIZATION = { name: 'Authorization', description: 'Bearer and a token.', isRequired: true, isSecret: true }

/**
 * The server card, and the catalog of the host, which leads to the card. Both are public: no authentication, every
 * origin.
 */
export class ServerCard {
  readonly cardPath: string
  readonly #options: McpCardOptions
  readonly #subject: CardSubject
  readonly #publicUrl: string | undefined

  /** @throws RangeError for an option that is not allowed */
  constructor(options: McpCardOptions, subject: CardSubject) {
    const { name, description, publicUrl } = options
    if (!NAME.test(name)) {
      throw new RangeError(`card.name: ${JSON.stringify(name)}; allowed is a name such as "com.example/broker"`)
    }
    if (description === '' || description.length > MAX_DESCRIPTION) {
      throw new RangeError(
        `card.description: it has ${description.length} characters; allowed are 1 to ${MAX_DESCRIPTION}`,
      )
    }
    this.cardPath = `${subject.path}/server-card`
    this.#options = options
    this.#subject = subject
    this.#publicUrl = publicUrl === undefined ? undefined : readPublicUrl(publicUrl)
  }

  /** Answers with the card. */
  card(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    this.#answer(request, response, headers, CARD_TYPE, (base) => {
      const { name, description } = this.#options
      const { path, serverInfo, token } = this.#subject
      const { version, title, websiteUrl } = serverInfo
      return {
        $schema: CARD_SCHEMA,
        name,
        version,
        description,
        title,
        websiteUrl,
        remotes: [
          {
            type: 'streamable-http',
            url: `${base}${path}`,
            headers: token ? [AUTHORIZATION] : undefined,
            supportedProtocolVersions: SUPPORTED_VERSIONS,
          },
        ],
      }
    })
  }

  /** Answers with the catalog of the host. */
  catalog(request: HttpRequest, response: HttpResponse, headers: OutgoingHttpHeaders | undefined): void {
    this.#answer(request, response, headers, 'application/json', (base) => {
      const { name } = this.#options
      const { serverInfo } = this.#subject
      const suffix = name.slice(name.indexOf('/') + 1)
      return {
        specVersion: '1.0',
        entries: [
          {
            identifier: `urn:air:${new URL(base).hostname}:mcp:${suffix}`,
            displayName: serverInfo.title ?? serverInfo.name,
            type: CARD_TYPE,
            url: `${base}${this.cardPath}`,
          },
        ],
      }
    })
  }

  #answer(
    request: HttpRequest,
    response: HttpResponse,
    headers: OutgoingHttpHeaders | undefined,
    mediaType: string,
    create: (base: string) => object,
  ): void {
    const at = baseUrlOf(request, this.#publicUrl)
    const text = JSON.stringify(create(at.base))
    answerDocument(request, response, forEveryOrigin(headers), { text, etag: etagOf(text), mediaType }, caching(at))
  }
}

/** A document that shows the host of one request is for this client alone. */
function caching({ configured }: BaseUrl): OutgoingHttpHeaders {
  return { 'Cache-Control': `${configured ? 'public' : 'private'}, max-age=${MAX_AGE_SECONDS}` }
}

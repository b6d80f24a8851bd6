import type { DocumentedRoute } from '@signalbox/http-kit/internal'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'

import { sendEnvelope, success, successSchema } from '../envelope.ts'

/** The identity provider at which operators sign in, and the page as its public client. It contains no secret. */
export interface ConsoleOAuth {
  readonly issuer: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly clientId: string
  readonly scopes: readonly string[]
  /** The resource that tokens are requested for (RFC 8707); empty for none. */
  readonly resource: string
}

/** Provides the identity provider of the page. */
export interface ConsoleOAuthPort {
  readonly issuer: string
  /** Returns the provider with its endpoints; undefined while its metadata cannot be read. Never rejects. */
  read(): Promise<ConsoleOAuth | undefined>
}

const PATH = '/api/sign_in'

const url = (description: string) => Type.String({ format: 'uri', description })

const data = Type.Object({
  required: Type.Boolean({ description: 'True if the listener requires a token.' }),
  provider: Type.Union([Type.String(), Type.Null()], {
    description: 'The issuer at which operators can sign in; null if there is none.',
  }),
  oauth: Type.Union(
    [
      Type.Object({
        authorization_endpoint: url('The address that the browser opens.'),
        token_endpoint: url('The address at which the page exchanges the code.'),
        client_id: Type.String(),
        scopes: Type.Array(Type.String()),
        resource: Type.String({ description: 'The value of the parameter `resource`; empty for none.' }),
      }),
      Type.Null(),
    ],
    { description: 'The parameters of the authorization code flow; null while the provider does not answer.' },
  ),
})

/** The route that the page reads before an operator has a token. */
export const SIGN_IN_ROUTE: DocumentedRoute = {
  method: 'GET',
  path: PATH,
  listener: 'management',
  tag: 'Insight',
  summary: 'The ways in which an operator gets a token for the console.',
  isPublic: true,
  responses: { 200: { description: 'Success.', schema: successSchema(data) } },
}

interface SignInOptions {
  /** `true` if the listener requires a token. */
  readonly required: boolean
  readonly oauth: ConsoleOAuthPort | undefined
}

/** Adds the route. It is public, and answers during the start too. */
export function addSignInRoute(app: FastifyInstance, { required, oauth }: SignInOptions): void {
  app.get(PATH, async (_request, reply) => {
    const provider = await oauth?.read()
    return sendEnvelope(
      reply,
      200,
      success({
        required,
        provider: oauth?.issuer ?? null,
        oauth:
          provider === undefined
            ? null
            : {
                authorization_endpoint: provider.authorizationEndpoint,
                token_endpoint: provider.tokenEndpoint,
                client_id: provider.clientId,
                scopes: [...provider.scopes],
                resource: provider.resource,
              },
      }),
    )
  })
}

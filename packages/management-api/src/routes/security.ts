import { isoTime } from '@signalbox/http-kit'
import { Type } from 'typebox'

import type { ReloadFailure } from '../ports.ts'
import { defineManagementRoute, STRICT } from './route.ts'

const since = Type.String({ description: 'The time since which they are in force on this node, ISO 8601.' })

const failure = Type.Union([Type.Object({ time: Type.String(), reason: Type.String() }), Type.Null()], {
  description: 'The last reload, if it failed: the previous ones remain in force. Otherwise null.',
})

const listener = Type.Object({
  authentication: Type.Boolean({ description: 'True if the listener requires a token.' }),
  tls: Type.Boolean(),
  mutual_tls: Type.Boolean({ description: 'True if clients must present a certificate.' }),
})

export const securityRoute = defineManagementRoute({
  path: '/api/security',
  summary: 'The authentication and the policy that are in force on this node, and since when.',
  query: Type.Object({}, STRICT),
  data: Type.Object({
    shared: listener,
    management: listener,
    keys: Type.Union(
      [
        Type.Object({
          source: Type.String({ description: 'The setting that names the keys, such as `authentication.jwksUrl`.' }),
          algorithms: Type.Array(Type.String(), { description: 'Empty: the algorithms that fit the keys.' }),
          issuer: Type.String({ description: 'The required issuer; empty for any.' }),
          audience: Type.Array(Type.String(), { description: 'The allowed audiences; empty for any.' }),
          oauth: Type.Boolean({ description: 'True if the scopes of a token restrict its caller.' }),
          since,
          failure,
        }),
        Type.Null(),
      ],
      { description: 'The keys that verify tokens; null if no listener requires a token.' },
    ),
    policy: Type.Union(
      [
        Type.Object({
          file: Type.String(),
          rules: Type.Integer({ minimum: 0, description: 'The number of its rules.' }),
          since,
          failure,
        }),
        Type.Null(),
      ],
      { description: 'The policy of the shared listener; null if every caller may do everything.' },
    ),
  }),
  run(_query, { environment, services }) {
    const { authentication, policy, tls } = environment.security()
    const { keySource: source, algorithms, issuer, audience, oauth } = authentication
    const ofListener = (name: 'shared' | 'management') => ({
      authentication: authentication[name],
      tls: tls[name].enabled,
      mutual_tls: tls[name].mutual,
    })
    return {
      shared: ofListener('shared'),
      management: ofListener('management'),
      keys:
        source === undefined
          ? null
          : {
              source,
              algorithms: [...algorithms],
              issuer,
              audience: [...audience],
              oauth,
              since: isoTime(authentication.since),
              failure: shownFailure(authentication.failure),
            },
      policy:
        policy === undefined
          ? null
          : {
              file: policy.file,
              rules: services.authorization?.policy.rules.length ?? 0,
              since: isoTime(policy.since),
              failure: shownFailure(policy.failure),
            },
    }
  },
})

function shownFailure(reload: ReloadFailure | undefined): { time: string; reason: string } | null {
  return reload === undefined ? null : { time: isoTime(reload.at), reason: reload.reason }
}

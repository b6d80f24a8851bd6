import type { GetData } from '../api/client.ts'
import { UserText } from '../components/user-text.tsx'
import { beginSignIn, canUseProvider } from './oauth.ts'

interface ProviderButtonProps {
  readonly issuer: string
  /** Null while the server cannot read the metadata of the provider. */
  readonly oauth: GetData<'/api/sign_in'>['oauth']
}

/** Leads to the login page of the identity provider. */
export function ProviderButton({ issuer, oauth }: ProviderButtonProps) {
  const { host } = new URL(issuer)
  if (!canUseProvider)
    return (
      <p class="problem-text">
        Browsers allow signing in with <UserText>{host}</UserText> only over HTTPS or on localhost.
      </p>
    )
  if (oauth === null)
    return (
      <p class="problem-text" role="status">
        The server cannot read the metadata of <UserText>{issuer}</UserText>. Its log has the reason.
      </p>
    )
  const begin = (): void =>
    void beginSignIn({
      issuer,
      authorizationEndpoint: oauth.authorization_endpoint,
      tokenEndpoint: oauth.token_endpoint,
      clientId: oauth.client_id,
      scopes: oauth.scopes,
      resource: oauth.resource,
    })
  return (
    <button type="button" class="primary" onClick={begin}>
      Sign in with <UserText>{host}</UserText>
    </button>
  )
}

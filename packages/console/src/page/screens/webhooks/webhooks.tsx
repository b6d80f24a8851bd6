import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Webhooks() {
  return (
    <Page title="Webhooks">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}

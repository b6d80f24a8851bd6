import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Security() {
  return (
    <Page title="Security">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}

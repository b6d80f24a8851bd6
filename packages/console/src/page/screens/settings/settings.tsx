import { Empty } from '../../components/feedback.tsx'
import { Page } from '../../components/page.tsx'

export function Settings() {
  return (
    <Page title="Settings">
      <Empty>This screen is not built yet.</Empty>
    </Page>
  )
}

import t from 'tap'
import type { Config } from '../../../config/types.ts'
import type { CheckContext } from '../../../core/cli/doctor/contract.ts'
import { placeChecks } from '../../../plugins/models/place-checks.ts'

void t.test('secrets of keys and headers that are not in the vault are reported', async (t) => {
	const context = {
		secrets: async () => ({ find: async (ref: string) => (ref === 'KNOWN' ? { value: null } : undefined) }),
	} as unknown as CheckContext
	const provider = (key: string, header: string) => ({
		kind: 'openai',
		api_key: { secret: key },
		headers: { 'x-plain': 'text', 'x-team': { secret: header } },
	})
	const config = { providers: { one: provider('KNOWN', 'LOST'), two: provider('GONE', 'KNOWN') } } as unknown as Config
	const problems = await placeChecks.find(({ about }) => about === 'secrets')?.run(config, context)
	t.strictSame(
		problems?.map(({ path }) => path),
		['providers.one.headers.x-team.secret', 'providers.two.api_key.secret'],
	)
})

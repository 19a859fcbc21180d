import t from 'tap'
import { openLog } from '../../../core/log/log.ts'
import { openRedactor } from '../../../core/redactor/redactor.ts'
import type { Provider } from '../../../plugins/models/contract.ts'
import { modelsOf } from '../../../plugins/models/models.ts'

void t.test('settings of a provider apply to its calls, and those of an agent override them', async (t) => {
	const redactor = openRedactor()
	const main: Provider = {
		kind: 'anthropic',
		base_url: 'https://example.com/v1',
		model: 'm',
		headers: { 'api-key': { secret: 'AZURE' }, 'X-Title': 'Ours' },
		query: { 'api-version': '2026-01-01', key: 'value-in-address' },
		extra_body: { a: 1 },
		params: { temperature: 0.1, top_p: 0.2, max_tokens: 3 },
		context_window: 9_000,
		compat: { tools: false },
		startup_timeout_s: 600,
	}
	const models = modelsOf({
		config: { providers: { main }, default_provider: 'main', fallback: [], transcription: null },
		find: (() => ({ open: async (ref: string) => `value-of-${ref}` })) as never,
		log: openLog({ level: 'silent', format: 'json' }),
		redactor,
	})
	const order = {
		provider: 'main',
		kind: 'anthropic',
		model: 'm',
		timeout_ms: 120_000,
		base_url: 'https://example.com/v1',
		headers: { 'api-key': 'value-of-AZURE', 'X-Title': 'Ours' },
		query: { 'api-version': '2026-01-01', key: 'value-in-address' },
		extra_body: { a: 1 },
		params: { temperature: 0.1, top_p: 0.2, max_tokens: 3 },
		context_window: 9_000,
		compat: { tools: false },
		startup_timeout_ms: 600_000,
	}
	t.strictSame((await models.choose({})).orders, [order])
	const config = { temperature: 0.5, max_tokens: 6, params: { max_tokens: 7, seed: 8 }, context_window: 8_000 }
	t.strictSame((await models.choose(config)).orders, [
		{ ...order, params: { temperature: 0.5, top_p: 0.2, max_tokens: 7, seed: 8 }, context_window: 8_000 },
	])
	const text = redactor.of([{ provider: 'main' }]).data('value-of-AZURE, Ours; value-in-address, 2026-01-01', 'log')
	t.match(text, /^\[redacted[^,]*\], Ours; \[redacted[^,]*\], 2026-01-01$/, 'secrets of headers and query are redacted')
})

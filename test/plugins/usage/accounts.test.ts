/** Accounts of limits, without a gateway. */
import t from 'tap'
import type { Context } from '../../../core/plugin.ts'
import { livenessKey } from '../../../core/store/agent-scope.ts'
import { accountsOf } from '../../../plugins/usage/accounts.ts'
import type { UsageSettings } from '../../../plugins/usage/contract.ts'
import { openMemory } from '../../support/memory-engine.ts'

const ada = { uid: 'uid-of-ada', name: 'ada' }

void t.test('a run that calls a model before its start is durable keeps both reservations', async (t) => {
	const { store } = openMemory()
	await store.put(livenessKey(ada.uid), true)
	const list = async function* () {
		yield ada
	}
	const config: UsageSettings = { retention_days: 1, limits: {} }
	const use = (() => ({ list })) as unknown as Context['use']
	const accounts = accountsOf({ config, store, use })
	const payer = { id: 'bot', name: 'token "bot"', limits: { runs_per_day: 1, tokens_per_day: 100 } }
	const call = { provider: 'p', model: 'm', tokens: 100, cost: 0 }

	const start = accounts.start('run-1', ada, payer)
	await start.ops()
	const account = accounts.account('run-1', ada, {}, payer)
	t.equal(await account.reserve(call), null)
	const second = accounts.start('run-2', ada, payer)
	await t.rejects(second.ops(), { code: 'rate_limited', message: /started its 1 runs/ })
	second.end(false)

	start.end(true)
	const other = accounts.account('run-3', ada, {}, payer)
	t.match(await other.reserve(call), { code: 'limit_tokens' })
	account.close()
	t.equal(await other.reserve(call), null)
	other.close()
})

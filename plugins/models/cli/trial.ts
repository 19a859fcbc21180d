/** Tests the server with the answers so far. Each refused answer can be corrected separately. */
import { CliError } from '../../../core/cli/contract.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { askAddress, askKey, askModel, askVariable, keyNow, typeKey } from './inquiry.ts'
import type { Inquiry } from './inquiry.ts'
import { askingUntil } from '../../../core/cli/doctor/asking.ts'
import { listModels, tryModel } from '../server.ts'
import type { Ask, Server, ServerVerdict } from '../server.ts'

type TrialFailure = Exclude<ServerVerdict, { state: 'ok' }>
type Way = 'address' | 'key' | 'elsewhere' | 'model' | 'again' | 'onward' | 'leave'

/** The most likely cause first. */
const waysFor: Record<TrialFailure['state'], Way[]> = {
	unreachable: ['address', 'again', 'model', 'key'],
	denied: ['key', 'elsewhere', 'address', 'model', 'again'],
	refused: ['model', 'again', 'key', 'address'],
}

/** Repeats until the server accepts the address and the key, or the operator skips the check. Throws `failed` if the operator leaves. */
export async function connect(inquiry: Inquiry): Promise<void> {
	const { answers } = inquiry
	for (;;) {
		const verdict = await checked(inquiry, 'Asking the server for its models', listModels)
		inquiry.models = verdict.state === 'ok' ? verdict.models : undefined
		if (verdict.state === 'ok') return
		inquiry.wantsKey ||= verdict.state === 'denied'
		// The question for the key follows.
		const { key } = answers
		if (verdict.state === 'denied' && (!key || (key.from === 'vault' && key.value === undefined))) return
		const ways = waysFor[verdict.state].filter((way) => way !== 'model' && (way !== 'key' || key !== undefined))
		if (!(await corrected(inquiry, verdict, ways, 'Continue without this check'))) return
	}
}

/** Repeats until the model answers, or the operator saves anyway. Throws `failed` if the operator leaves. */
export async function tryAnswers(inquiry: Inquiry): Promise<void> {
	const { answers, cli } = inquiry
	const { out } = cli
	for (;;) {
		if (answers.key?.from === 'vault' && keyNow(inquiry) === undefined) {
			out.note('Not tested: only the gateway can read the key in its vault. Test it with svc run.')
			return
		}
		const { model = '' } = answers
		const verdict = await checked(inquiry, `Trying ${model}`, (server, ask) => tryModel(server, model, ask))
		if (verdict.state === 'ok') return out.note(out.style.good(`${model} answers.`))
		inquiry.wantsKey ||= verdict.state === 'denied'
		if (!(await corrected(inquiry, verdict, waysFor[verdict.state], 'Save it anyway'))) return
	}
}

/** False if the operator continues anyway. */
async function corrected(inquiry: Inquiry, { message }: TrialFailure, ways: Way[], onward: string): Promise<boolean> {
	const { answers, cli } = inquiry
	const { key } = answers
	const canRetype = key?.from === 'vault' || key?.from === 'env'
	const labels: Record<Way, string> = {
		address: 'Correct the address',
		key: canRetype ? 'Correct the key' : 'Give it a key',
		elsewhere: 'Choose another source of the key',
		model: 'Choose another model',
		again: 'Try again',
		onward,
		leave: 'Leave without saving',
	}
	const offered = ([...ways, 'onward', 'leave'] satisfies Way[]).filter((way) => way !== 'elsewhere' || canRetype)
	const label = await cli.ask.choice(
		`${message}\nWhat do you want to do?`,
		offered.map((way) => labels[way]),
	)
	switch (offered.find((way) => labels[way] === label)) {
		case 'address':
			answers.base_url = await askAddress(inquiry, answers.base_url)
			break
		case 'key':
			if (key?.from === 'vault') answers.key = await typeKey(cli, key.secret)
			else if (key?.from === 'env') answers.key = await askVariable(cli, key.variable)
			else answers.key = await askKey(inquiry)
			break
		case 'elsewhere':
			answers.key = await askKey(inquiry)
			break
		case 'model':
			answers.model = await askModel(inquiry)
			break
		case 'onward':
			return false
		case 'leave':
			throw new CliError('failed', '')
		default:
	}
	return true
}

async function checked(
	inquiry: Inquiry,
	doing: string,
	check: (server: Server, ask: Ask) => Promise<ServerVerdict>,
): Promise<ServerVerdict> {
	const { answers, cli, preset } = inquiry
	using _ = cli.out.progress(doing, { terminalOnly: true })
	const { kind = preset.kind, base_url = '' } = answers
	return await check({ kind, base_url: base_url.replace(/\/+$/, ''), api_key: keyNow(inquiry) }, askingFor(cli))
}

function askingFor({ signal }: Cli): Ask {
	return async (url, { timeout_ms, ...request }) => {
		try {
			return await askingUntil(signal, timeout_ms)(url, request)
		} catch (error) {
			throw signal.aborted ? new CliError('interrupted', '', { cause: error }) : error
		}
	}
}

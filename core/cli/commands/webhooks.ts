import { consent, yesOption } from '../consent.ts'
import { CliError, path } from '../contract.ts'
import type { Register, Style } from '../contract.ts'
import { countOption } from '../options.ts'
import { textInput } from '../text-input.ts'
import { when } from '../when.ts'

interface Webhook {
	slug: string
	token: string
	created_at: string
	last_delivery: string | null
	delivery_count: number
}

interface NewWebhook {
	slug: string
	url: string
	token: string
	secret: string
}

interface Delivery {
	delivery_id: string
	source_ip: string
	signature_valid: boolean
	run_id: string | null
	status_code: number
	error: string | null
	received_at: string
}

export const register: Register = (program, cli) => {
	const webhooks = program
		.command('webhooks')
		.description('Let other services start runs')
		.addHelpText('after', examples)

	webhooks
		.command('list <agent>')
		.description('List the webhooks of an agent')
		.action(async (agent: string) => {
			const list = await cli.api.request<Webhook[]>('GET', path`/v1/agents/${agent}/webhooks`)
			cli.out.answer(list, (all, style) =>
				style.table(
					['webhook', 'deliveries', 'last', 'address', 'created'],
					all.map((one) => [
						one.slug,
						one.delivery_count,
						when(one.last_delivery),
						`/v1/hooks/${one.token}`,
						when(one.created_at),
					]),
					`No webhooks yet. Add one: svc webhooks add ${agent} NAME`,
				),
			)
		})

	webhooks
		.command('add <agent> <slug>')
		.description('Make a webhook, and show its address and, this once, its secret')
		.action(async (agent: string, slug: string) => {
			const made = await cli.api.request<NewWebhook>('POST', path`/v1/agents/${agent}/webhooks`, { slug })
			shown(made)
		})

	webhooks
		.command('rotate <agent> <slug>')
		.description('Give a webhook a new address and a new secret; the old ones are no longer good')
		.option(...yesOption)
		.action(async (agent: string, slug: string, options: { yes?: boolean }) => {
			await consent(cli, options, `Make the address and the secret of ${agent}'s webhook ${slug} anew?`)
			shown(await cli.api.request<NewWebhook>('POST', path`/v1/agents/${agent}/webhooks/${slug}/rotate`))
		})

	webhooks
		.command('remove <agent> <slug>')
		.description('Remove a webhook; runs that it started go on')
		.option(...yesOption)
		.action(async (agent: string, slug: string, options: { yes?: boolean }) => {
			await consent(cli, options, `Remove ${agent}'s webhook ${slug}?`)
			await cli.api.request('DELETE', path`/v1/agents/${agent}/webhooks/${slug}`)
			cli.out.answer({ slug, status: 'deleted' }, () => `Removed ${slug}. Deliveries to its address are refused now.`)
		})

	webhooks
		.command('deliveries <agent> <slug>')
		.description('Show the log of deliveries, newest first')
		.addOption(countOption('--limit <n>', 'how many, 500 at most', { max: 500, fallback: 50 }))
		.option('--before <delivery>', 'go on behind this one')
		.action(async (agent: string, slug: string, { limit, before }: { limit: number; before?: string }) => {
			const query = path`limit=${limit}` + (before === undefined ? '' : path`&before=${before}`)
			const where = `${path`/v1/agents/${agent}/webhooks/${slug}/deliveries`}?${query}`
			cli.out.answer(await cli.api.request<Delivery[]>('GET', where), deliveriesTable)
		})

	webhooks
		.command('test <agent> <slug>')
		.description('Send a signed delivery, as the other service would, and start a run')
		.option('--data <file>', 'the JSON to deliver; - reads standard input')
		.action(async (agent: string, slug: string, { data }: { data?: string }) => {
			const body = data === undefined ? {} : { payload: parsed(await textInput(cli, data), data) }
			const where = path`/v1/agents/${agent}/webhooks/${slug}/test`
			const sent = await cli.api.request<{ delivery_id: string; run_id: string }>('POST', where, body)
			cli.out.answer(sent, ({ delivery_id, run_id }, style) =>
				style.fields([
					['delivery', delivery_id],
					['run', run_id],
				]),
			)
			cli.out.note(`To see what becomes of it: svc runs follow ${sent.run_id}`)
		})

	function shown(made: NewWebhook): void {
		cli.out.answer(made, ({ url, secret }, style) =>
			style.fields([
				['url', url],
				['secret', secret],
			]),
		)
		cli.out.note('The secret is not shown again: give both to the other service now.')
	}
}

function deliveriesTable(list: Delivery[], style: Style): string {
	return style.table(
		['delivery', 'received', 'status', 'signed', 'from', 'run', 'why not'],
		list.map((one) => [
			one.delivery_id,
			when(one.received_at),
			one.status_code,
			one.signature_valid ? 'yes' : 'no',
			one.source_ip,
			one.run_id,
			one.error,
		]),
		'No deliveries yet.',
	)
}

function parsed(text: string, name: string): unknown {
	try {
		return JSON.parse(text)
	} catch {
		throw new CliError('usage', `${name === '-' ? 'standard input' : name} is not valid JSON`)
	}
}

const examples = `
Examples:
  svc webhooks add ada github              shows address and secret for the other service
  svc webhooks test ada github
  echo '{"event": "deployed"}' | svc webhooks test ada github --data -
  svc webhooks deliveries ada github --limit 10`

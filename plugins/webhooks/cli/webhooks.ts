import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { deliverIn } from '../../../core/cli/option-values.ts'
import { answerList, answerTable } from '../../../core/cli/lists.ts'
import { textInput } from '../../../core/cli/text-input.ts'
import { when } from '../../../core/cli/when.ts'
import { schemeNames } from '../contract.ts'
import type { NewWebhook, SchemeName, TestedDelivery, Webhook, WebhookDelivery } from '../contract.ts'
import { schemeOf } from '../schemes.ts'

interface NewWebhookOptions {
	agent: string
	slug: string
	instructions?: string
	deliver?: string
	scheme?: SchemeName
	secret?: string
	custom?: string
}

export default {
	examples: `
Examples:
  svc webhooks add ada github              shows address and secret for the other service
  svc webhooks add ada code --scheme github
  svc webhooks add ada payments --scheme stripe
  svc webhooks set-secret ada payments -     reads the secret that Stripe created from standard input
  svc webhooks add ada alerts --instructions alerts.md --deliver telegram:42
  svc webhooks test ada github
  echo '{"event": "deployed"}' | svc webhooks test ada github --data -
  svc webhooks deliveries ada github --limit 10`,
	commands: {
		list: {
			description: 'List the webhooks of an agent or of all agents',
			arguments: '[agent]',
			run: (cli, { agent }: { agent?: string }) =>
				answerList(cli, agent, {
					of: (name) => cli.api.request<Webhook[]>('GET', path`/v1/agents/${name}/webhooks`),
					empty: (name) => `No webhooks yet. Add one: svc webhooks add ${name} NAME`,
					row: (one) => ({
						webhook: one.slug,
						scheme: one.scheme,
						deliveries: one.delivery_count,
						last: when(one.last_delivery),
						address: `/v1/hooks/${one.token}`,
						created: when(one.created_at),
					}),
				}),
		},
		add: {
			description: 'Create a webhook, and show its address and its secret, which is not shown again',
			arguments: '<agent> <slug>',
			options: {
				'--instructions <file>': 'what the agent should do with deliveries: a text file, or - for standard input',
				'--deliver <channel:chat>': 'a chat of the agent that gets the answers, such as telegram:42; or none',
				'--scheme <name>': `how the sender signs: ${schemeNames.join(', ')}`,
				'--secret <file>': 'the secret, if the sender created it: a text file, or - for standard input',
				'--custom <file>': 'the definition of the scheme custom: a JSON file, or - for standard input',
			},
			async run(cli, { agent, slug, instructions: file, deliver, scheme, ...files }: NewWebhookOptions) {
				const given = [file, files.secret, files.custom].filter((one) => one === '-')
				if (given.length > 1) throw new CliError('usage', 'only one of the files can be standard input')
				const body = {
					slug,
					scheme,
					...(files.secret !== undefined && { secret: (await textInput(cli, files.secret)).trim() }),
					...(files.custom !== undefined && { custom: parsed(await textInput(cli, files.custom), files.custom) }),
					...(file !== undefined && { instructions: (await textInput(cli, file)).trim() }),
					...(deliver !== undefined && { deliver: deliverIn(deliver) }),
				}
				const made = await cli.api.request<NewWebhook>('POST', path`/v1/agents/${agent}/webhooks`, body)
				shown(cli, made, nextStep({ agent, slug, ...files, ...(scheme && { scheme }) }))
			},
		},
		rotate: {
			description: 'Give a webhook a new address and a new secret; the old ones become invalid',
			arguments: '<agent> <slug>',
			options: yesOption,
			async run(cli, { agent, slug, ...options }: { agent: string; slug: string; yes?: boolean }) {
				await consent(cli, options, `Replace the address and the secret of ${agent}'s webhook ${slug}?`)
				const made = await cli.api.request<NewWebhook>('POST', path`/v1/agents/${agent}/webhooks/${slug}/rotate`)
				shown(cli, made, `${GIVE_BOTH} If that service creates the secret: ${setSecret(agent, slug)}`)
			},
		},
		'set-secret': {
			description: 'Set the secret that the sender created, and keep the address',
			arguments: '<agent> <slug> <file>',
			async run(cli, { agent, slug, file }: { agent: string; slug: string; file: string }) {
				const secret = (await textInput(cli, file)).trim()
				await cli.api.request('PUT', path`/v1/agents/${agent}/webhooks/${slug}/secret`, { secret })
				cli.out.answer({ slug, status: 'set' }, () => `${slug} accepts deliveries that are signed with this secret.`)
			},
		},
		remove: {
			description: 'Remove a webhook; runs that it started continue',
			arguments: '<agent> <slug>',
			options: yesOption,
			async run(cli, { agent, slug, ...options }: { agent: string; slug: string; yes?: boolean }) {
				await consent(cli, options, `Remove ${agent}'s webhook ${slug}?`)
				await cli.api.request('DELETE', path`/v1/agents/${agent}/webhooks/${slug}`)
				cli.out.answer({ slug, status: 'deleted' }, () => `Removed ${slug}. Deliveries to its address are refused now.`)
			},
		},
		deliveries: {
			description: 'Show the log of deliveries, newest first',
			arguments: '<agent> <slug>',
			options: {
				'--limit <n>': { about: 'how many, 500 at most', max: 500, default: 50 },
				'--before <delivery>': 'continue after this one',
			},
			async run(cli, { agent, slug, limit, before }: { agent: string; slug: string; limit: number; before?: string }) {
				const query = path`limit=${limit}` + (before === undefined ? '' : path`&before=${before}`)
				const where = `${path`/v1/agents/${agent}/webhooks/${slug}/deliveries`}?${query}`
				const list = await cli.api.request<WebhookDelivery[]>('GET', where)
				answerTable(cli, list, 'No deliveries yet.', (one) => ({
					delivery: one.delivery_id,
					received: when(one.received_at),
					status: one.status_code,
					signed: one.signature_valid ? 'yes' : 'no',
					from: one.source_ip,
					run: one.run_id,
					'why not': one.error,
				}))
			},
		},
		test: {
			description: 'Send a signed delivery, as the other service would, and start a run',
			arguments: '<agent> <slug>',
			options: { '--data <file>': 'the JSON to deliver; - reads standard input' },
			async run(cli, { agent, slug, data }: { agent: string; slug: string; data?: string }) {
				const body = data === undefined ? {} : { payload: parsed(await textInput(cli, data), data) }
				const where = path`/v1/agents/${agent}/webhooks/${slug}/test`
				const sent = await cli.api.request<TestedDelivery>('POST', where, body)
				cli.out.answer(sent, ({ delivery_id, run_id }, style) =>
					style.fields([
						['delivery', delivery_id],
						['run', run_id],
					]),
				)
				cli.out.note(`To follow its run: svc runs follow ${sent.run_id}`)
			},
		},
	},
} satisfies Command

const GIVE_BOTH = 'The secret is not shown again: give both to the other service now.'

function nextStep({ agent, slug, scheme = 'svc', secret }: NewWebhookOptions): string {
	if (secret !== undefined) return 'Next: give the address to the other service.'
	const { sender_makes_secret = false, challenge = false } = schemeOf({ scheme })
	if (!sender_makes_secret) return GIVE_BOTH
	const how = setSecret(agent, slug)
	return challenge
		? `Next: store the secret that ${scheme} created: ${how}\nThen give it the address, which it checks at once.`
		: `Next: give the address to ${scheme}, and store the secret that it creates: ${how}`
}

function setSecret(agent: string, slug: string): string {
	return `svc webhooks set-secret ${agent} ${slug} -`
}

function shown(cli: Cli, made: NewWebhook, next: string): void {
	cli.out.answer(made, ({ url, secret }, style) =>
		style.fields([
			['url', url],
			['secret', secret],
		]),
	)
	cli.out.note(next)
}

function parsed(text: string, name: string): unknown {
	try {
		return JSON.parse(text)
	} catch {
		throw new CliError('usage', `${name === '-' ? 'standard input' : name} is not valid JSON`)
	}
}

/** Deliveries that the senders' own libraries sign. */
import { sign } from '@octokit/webhooks-methods'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import Stripe from 'stripe'
import { Webhook as SvixWebhook } from 'svix'

const base64 = Buffer.from('a-secret-of-thirty-two-characters').toString('base64')
const MINUTE_MS = 60_000

/** `sign`: returns the headers of a delivery with this body, id and time. */
export const senders = [
	{
		name: '@octokit/webhooks-methods',
		scheme: 'github',
		secret: 'a-secret-of-thirty-two-characters',
		hasTime: false,
		sign: async ({ secret, body, id }) => ({
			'x-github-event': 'push',
			'x-github-delivery': id,
			'x-hub-signature-256': await sign(secret, body),
		}),
	},
	{
		name: 'standardwebhooks',
		scheme: 'standard-webhooks',
		secret: `whsec_${base64}`,
		hasTime: true,
		sign: ({ secret, body, id, at }) => ({
			'webhook-id': id,
			'webhook-timestamp': seconds(at),
			'webhook-signature': new StandardWebhook(secret).sign(id, at, body),
		}),
	},
	{
		name: 'svix',
		scheme: 'standard-webhooks',
		secret: `whsec_${base64}`,
		hasTime: true,
		sign: ({ secret, body, id, at }) => ({
			'svix-id': id,
			'svix-timestamp': seconds(at),
			'svix-signature': new SvixWebhook(secret).sign(id, at, body),
		}),
	},
	{
		name: 'stripe',
		scheme: 'stripe',
		secret: 'whsec_a_secret_of_thirty_two_characters',
		hasTime: true,
		sign: ({ secret, body, at }) => ({
			'stripe-signature': Stripe.webhooks.generateTestHeaderString({
				payload: body,
				secret,
				timestamp: Number(seconds(at)),
			}),
		}),
	},
].map(({ name, scheme, secret, hasTime, sign }) => ({
	name,
	features: {
		async accepted(at) {
			const hook = await at.webhook(scheme, secret)
			await hook.post(await delivery({ secret, sign }), 200)
			await hook.runs(1)
		},
		async changed(at) {
			const hook = await at.webhook(scheme, secret)
			const { headers, body } = await delivery({ secret, sign })
			await hook.post({ headers, body: body.replace('paid', 'paie') }, 401)
		},
		async 'too old'(at) {
			if (!hasTime) return 'The sender signs no time.'
			const hook = await at.webhook(scheme, secret)
			await hook.post(await delivery({ secret, sign, at: new Date(Date.now() - 10 * MINUTE_MS) }), 401)
		},
		async repeated(at) {
			const hook = await at.webhook(scheme, secret)
			const one = await delivery({ secret, sign })
			for (let n = 0; n < 3; n++) await hook.post(one, 200)
			await hook.runs(1)
		},
		async '10 × 60 at once'(at) {
			for (let round = 0; round < 10; round++) {
				const hook = await at.webhook(scheme, secret)
				const all = await Promise.all(Array.from({ length: 60 }, () => delivery({ secret, sign })))
				await Promise.all(all.map((one) => hook.post(one, 200)))
				await hook.runs(60)
			}
		},
	},
}))

async function delivery({ secret, sign, at = new Date() }) {
	const id = `msg_${crypto.randomUUID()}`
	const body = JSON.stringify({ id, type: 'invoice.paid', data: { amount: 5 } })
	return { body, headers: { 'content-type': 'application/json', ...(await sign({ secret, body, id, at })) } }
}

function seconds(at) {
	return String(Math.floor(at.getTime() / 1000))
}

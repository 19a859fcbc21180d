/** Renamed keys of an agent's config; these renames exist only here. */
import { server as hapi } from '@hapi/hapi'
import Joi from 'joi'
import t from 'tap'
import { isFault } from '../../../core/errors.ts'
import { config } from '../../../plugins/agents/config-schema.ts'
import { formerNames, renamesIn } from '../../../plugins/agents/former-names.ts'

const server = hapi()
server.route({
	method: 'POST',
	path: '/',
	options: {
		ext: { onPostAuth: formerNames({ 'limits.calls': 'limits.steps', zone: 'timezone', window: 'context.tokens' }) },
		validate: {
			payload: Joi.object({ config }),
			failAction: (_request, _h, error) => {
				throw error!
			},
		},
	},
	handler: (request) => ({ ...(request.payload as object), warnings: renamesIn(request) }),
})
server.ext('onPreResponse', ({ response }, h) =>
	isFault(response, 'invalid_request') ? h.response({ refused: response.message }).code(400) : h.continue,
)

async function post(body: object): Promise<{ status: number; body: Record<string, unknown> }> {
	const answer = await server.inject({ method: 'POST', url: '/', payload: body })
	return { status: answer.statusCode, body: JSON.parse(answer.payload) as Record<string, unknown> }
}

void t.test('accepts a key under its former name and path, with a warning', async (t) => {
	const config = { limits: { calls: 7, tokens: 100 }, zone: 'Europe/Berlin', window: 5000, own: { zone: 'kept' } }
	t.strictSame((await post({ config })).body, {
		config: {
			limits: { tokens: 100, steps: 7 },
			own: { zone: 'kept' },
			timezone: 'Europe/Berlin',
			context: { tokens: 5000 },
		},
		warnings: [
			{ path: 'config.limits.calls', message: 'is config.limits.steps now; use that name' },
			{ path: 'config.zone', message: 'is config.timezone now; use that name' },
			{ path: 'config.window', message: 'is config.context.tokens now; use that name' },
		],
	})
})

void t.test('validates the value as under the current name', async (t) => {
	const { status, body } = await post({ config: { limits: { calls: 0 } } })
	t.equal(status, 400)
	t.match(body['message'], /config\.limits\.steps.* must be greater than or equal to 1/)
})

void t.test('rejects a config that has both names', async (t) => {
	for (const config of [
		{ zone: 'Europe/Berlin', timezone: 'Europe/Paris' },
		{ window: 5000, context: 'wide' },
	]) {
		const { status, body } = await post({ config })
		t.equal(status, 400)
		t.match(body['refused'], /^config\.\w+ is config\.\S+ now; remove one of the two$/)
	}
})

void t.test('leaves other bodies unchanged', async (t) => {
	t.strictSame((await post({})).body, { warnings: [] })
	t.strictSame((await post({ config: { timezone: 'Europe/Paris' } })).body, {
		config: { timezone: 'Europe/Paris' },
		warnings: [],
	})
	t.equal((await post({ config: ['zone'] })).status, 400)
})

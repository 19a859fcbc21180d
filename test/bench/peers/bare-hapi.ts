/** The bare counterpart of a REST request: a hapi route that validates the name with joi and returns an object from memory. */
import hapi from '@hapi/hapi'
import Joi from 'joi'
import { answerWith } from '../peer.ts'

const server = hapi.server({ host: '127.0.0.1', port: 0 })
const agents = new Map([
	['ada', { name: 'ada', persona: null, config: {}, created_at: new Date().toISOString(), skills: [] }],
])
server.route<{ Params: { name: string } }>({
	method: 'GET',
	path: '/v1/agents/{name}',
	options: {
		validate: {
			params: Joi.object({
				name: Joi.string()
					.pattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
					.required(),
			}),
		},
	},
	handler: (request, h) => agents.get(request.params.name) ?? h.response().code(404),
})
await server.start()

answerWith({ url: () => server.info.uri })

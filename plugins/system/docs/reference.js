/* global SwaggerUIBundle, document -- runs in the browser, after Swagger UI's own script */

/** Disables "Try it out" for operations at another address, which is another origin, and for streams, which never end. */
const limitTryItOut = () => ({
	statePlugins: {
		spec: {
			wrapSelectors: {
				allowTryItOutFor: () => (state, path, method) => {
					const item = state.getIn(['json', 'paths', path])
					const types = item?.getIn([method, 'responses', '200', 'content'])
					return !item?.get('servers') && !types?.has('text/event-stream')
				},
			},
		},
	},
})

SwaggerUIBundle({
	url: '/v1/openapi.json',
	domNode: document.querySelector('#reference'),
	presets: [SwaggerUIBundle.presets.apis],
	plugins: [limitTryItOut],
	layout: 'BaseLayout',
	deepLinking: true,
	docExpansion: 'list',
	defaultModelsExpandDepth: 0,
	displayOperationId: true,
	filter: true,
	showCommonExtensions: true,
	tryItOutEnabled: true,
	// Forgets a token when the page is closed.
	persistAuthorization: false,
	// The validator's badge would send the document to another host.
	validatorUrl: null,
	queryConfigEnabled: false,
})

// What the tests ask of node: sockets, files, the thread pool, timers.
const http = require('http');
const fs = require('fs');
const crypto = require('crypto');
const counts = {served: 0, connections: 0, files: 0, keys: 0, timers: 0};

function answer(request, response) {
  counts.served++;
  switch (request.url) {
  case '/file':
    fs.readFile(__filename, (error, data) => {
      counts.files++;
      response.end(String(data.length));
    });
    break;
  case '/key':
    crypto.pbkdf2('word', 'salt', 2000, 32, 'sha256', (error, key) => {
      counts.keys++;
      response.end(key.toString('hex'));
    });
    break;
  case '/timer':
    setTimeout(() => {
      counts.timers++;
      response.end('timer');
    }, 2);
    break;
  case '/counts':
    response.end(JSON.stringify({open: open.size, ...counts}));
    break;
  case '/stop':
    response.end(JSON.stringify(counts));
    setTimeout(() => process.exit(0), 50);
    break;
  default:
    response.end('hello');
  }
}

const open = new Set();
const server = http.createServer(answer);
server.on('connection', (socket) => {
  counts.connections++;
  open.add(socket);
  socket.on('close', () => open.delete(socket));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
